//go:build soak

package soak

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// application writes to a volume as programs do: in place and by rename, files of its own,
// below a directory by the volume's name, and lines at the end of files of everybody's.
type application struct {
	journal  *journal
	findings *findings
	random   *rand.Rand
	written  int // It makes each content another one.
}

// deed is something that an application does, and how often of all its deeds.
type deed struct {
	often int
	do    func(a *application, root string)
}

var deeds = []deed{
	{22, (*application).create},
	{18, (*application).replaceInPlace},
	{14, (*application).replaceByRename},
	{16, (*application).add},
	{8, (*application).remove},
	{8, (*application).rename},
	{4, (*application).changeMode},
	{3, (*application).link},
	{2, (*application).large},
	{3, (*application).turnBack},
	{5, (*application).share},
}

// shares is the number of files that all write.
const shares = 8

func sharePath(i int) string { return fmt.Sprintf("shared/%d", i) }

// step does one thing to the tree at root.
func (a *application) step(root string) {
	sum := 0
	for _, d := range deeds {
		sum += d.often
	}
	at := a.random.IntN(sum)
	for _, d := range deeds {
		if at -= d.often; at < 0 {
			d.do(a, root)
			return
		}
	}
}

// content is one that there never was.
func (a *application) content() string {
	a.written++
	return fmt.Sprintf("%s %d %x\n", a.journal.name, a.written, a.random.Uint64()) +
		strings.Repeat("filling\n", a.random.IntN(200))
}

// fresh is a path that there never was.
func (a *application) fresh() string {
	a.written++
	dirs := []string{"", "a/", "b/", "b/c d/", "b/é/", fmt.Sprintf("d%d/", a.random.IntN(20))}
	return fmt.Sprintf("%s/%sf%d", a.journal.name, dirs[a.random.IntN(len(dirs))], a.written)
}

// some is a file that is there and not a link.
func (a *application) some() (path string, f file, found bool) {
	paths := a.journal.paths()
	if len(paths) == 0 {
		return "", file{}, false
	}
	path = paths[a.random.IntN(len(paths))]
	f, _ = a.journal.get(path)
	return path, f, f.mode.IsRegular()
}

// most is how many files an application has, so that it does not fill a disk by itself.
const most = 150

func (a *application) create(root string) {
	if len(a.journal.paths()) >= most {
		a.remove(root)
		return
	}
	path, modes := a.fresh(), []fs.FileMode{0o644, 0o644, 0o644, 0o600, 0o755}
	a.put("created", root, path, a.content(), modes[a.random.IntN(len(modes))])
}

func (a *application) replaceInPlace(root string) {
	if path, f, found := a.some(); found {
		a.put("replaced", root, path, a.content(), f.mode)
	}
}

func (a *application) large(root string) {
	if path, f, found := a.some(); found {
		a.put("replaced, large,", root, path, a.content()+strings.Repeat(a.content(), 60), f.mode)
	}
}

// turnBack writes a file and sets its time back, as a clock that jumps does.
func (a *application) turnBack(root string) {
	path, f, found := a.some()
	if !found {
		return
	}
	info, err := os.Lstat(filepath.Join(root, path))
	a.put("replaced, with the same time,", root, path, a.content(), f.mode)
	if err == nil {
		_ = os.Chtimes(filepath.Join(root, path), info.ModTime(), info.ModTime())
	}
}

// put makes a file what is wanted.
func (a *application) put(did, root, path, content string, mode fs.FileMode) {
	at := filepath.Join(root, path)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	if err == nil {
		err = os.WriteFile(at, []byte(content), mode)
	}
	if err == nil {
		err = os.Chmod(at, mode)
	}
	a.is(did, root, path, file{mode: mode, content: content}, err)
}

// is notes what is at the path: what is wanted, unless something failed.
func (a *application) is(did, root, path string, f file, failed error) {
	if failed == nil {
		a.journal.has(did, path, f, nil)
		return
	}
	// Only a full disk is an excuse.
	if !errors.Is(failed, unix.ENOSPC) {
		a.findings.add("%s could not be %s: %v; before that: %s", path, did, failed, a.journal.last(path))
	}
	found, err := read(filepath.Join(root, path))
	if err != nil {
		a.journal.lacks("had not "+did, path, failed)
		return
	}
	a.journal.has("had not "+did, path, found, failed)
}

// read is what is at a path.
func read(at string) (file, error) {
	info, err := os.Lstat(at)
	switch {
	case err != nil:
		return file{}, err
	case info.Mode().Type() == fs.ModeSymlink:
		content, err := os.Readlink(at)
		return file{mode: fs.ModeSymlink, content: content}, err
	case !info.Mode().IsRegular():
		return file{mode: info.Mode().Type()}, nil
	}
	content, err := os.ReadFile(at)
	return file{mode: info.Mode(), content: string(content)}, err
}

func (a *application) replaceByRename(root string) {
	path, f, found := a.some()
	if !found {
		return
	}
	beside := a.fresh()
	a.put("created", root, beside, a.content(), f.mode)
	a.move("replaced by a rename", root, beside, path)
}

func (a *application) rename(root string) {
	if path, _, found := a.some(); found {
		a.move("renamed", root, path, a.fresh())
	}
}

func (a *application) move(did, root, from, to string) {
	f, found := a.journal.get(from)
	if !found {
		return // The disk was full when it was to be made.
	}
	err := os.MkdirAll(filepath.Dir(filepath.Join(root, to)), 0o755)
	if err == nil {
		err = os.Rename(filepath.Join(root, from), filepath.Join(root, to))
	}
	if err == nil {
		a.journal.lacks("renamed to "+to, from, nil)
		a.journal.has(did+" from "+from, to, f, nil)
		return
	}
	if !errors.Is(err, unix.ENOSPC) {
		a.findings.add("%s could not be renamed to %s: %v; before that: %s", from, to, err, a.journal.last(from))
	}
}

// add adds a line in place.
func (a *application) add(root string) {
	path, f, found := a.some()
	if !found || len(f.content) > 64<<10 {
		return
	}
	a.written++
	line := fmt.Sprintf("%s %d %x\n", a.journal.name, a.written, a.random.Uint64())
	err := appendTo(filepath.Join(root, path), line, nil)
	f.content += line
	a.is("added to", root, path, f, err)
}

// appendTo adds to a file that is there; after, if it is not nil, is called with it then.
func appendTo(at, line string, after func(f *os.File)) error {
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	if after != nil {
		after(f)
	}
	return errors.Join(err, f.Close())
}

func (a *application) remove(root string) {
	path, _, found := a.some()
	if !found {
		return
	}
	at := filepath.Join(root, path)
	if err := os.Remove(at); err != nil {
		a.findings.add("%s could not be removed: %v; before that: %s", path, err, a.journal.last(path))
		return
	}
	a.journal.lacks("removed", path, nil)
	if a.random.IntN(2) == 0 {
		_ = os.Remove(filepath.Dir(at)) // If nothing is left in it.
	}
}

func (a *application) changeMode(root string) {
	path, f, found := a.some()
	if !found {
		return
	}
	f.mode ^= 0o111
	a.is("changed the mode of", root, path, f, os.Chmod(filepath.Join(root, path), f.mode))
}

func (a *application) link(root string) {
	path, to := a.fresh(), "../"+a.fresh()
	at := filepath.Join(root, path)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	if err == nil {
		err = os.Symlink(to, at)
	}
	a.is("linked", root, path, file{mode: fs.ModeSymlink, content: to}, err)
}

// share adds a line to a file of everybody's. The file may be replaced by upstream's while
// it is open: then nobody knows where the line went, which the application sees.
func (a *application) share(root string) {
	path := sharePath(a.random.IntN(shares))
	at := filepath.Join(root, path)
	a.written++
	line := fmt.Sprintf("%s %d %x", a.journal.name, a.written, a.random.Uint64())
	isOvertaken := false
	err := appendTo(at, line+"\n", func(f *os.File) {
		has, err := f.Stat()
		is, missing := os.Lstat(at)
		isOvertaken = err != nil || missing != nil || !os.SameFile(has, is)
	})
	switch {
	case err == nil:
		a.journal.line(path, line, isOvertaken)
	case !errors.Is(err, unix.ENOSPC):
		a.findings.add("a line could not be added to %s: %v", path, err)
	}
}

// think is the time to the next deed.
func (a *application) think() time.Duration {
	if a.random.IntN(60) == 0 {
		return 6 * time.Second // So quiet that it is committed.
	}
	return time.Duration(20+a.random.IntN(250)) * time.Millisecond
}
