//go:build soak

package soak

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mostHostile bounds what of a disk such trees take.
const mostHostile = 3

// writeHostile has the pod leave what is hard to remove. One that did not fit is given up.
func (v *volume) writeHostile() {
	if v.readOnly || v.mark == "" || len(v.hostile) >= mostHostile {
		return
	}
	root := v.enter()
	if root == nil {
		return
	}
	defer root.Close()
	v.serial++
	before, name := v.now(), fmt.Sprintf("hostile-%d", v.serial)
	err := root.Mkdir(name, 0o755)
	if err == nil {
		at := filepath.Join(v.target(v.holder), name)
		kinds := []func(string, *rand.Rand) error{v.s.linksOut, deepChain, everyByte, special}
		if err = kinds[v.random.IntN(len(kinds))](at, v.random); err == nil {
			v.hostile[name] = count(at)
		}
	}
	if err != nil {
		if !errors.Is(err, unix.ENOSPC) || before.hadRoom(v) {
			v.wrong("write a hostile tree: %v", err)
		}
		_ = root.RemoveAll(name)
	}
}

// linksOut are links to what is outside of the copy.
func (s *soak) linksOut(at string, _ *rand.Rand) error {
	up := strings.Repeat("../", 20)
	for i, to := range []string{s.canary.dir, s.canary.dir + "/sub/file", up, "/", "..", s.Store, "/proc/self/root" + s.canary.dir, up + s.canary.dir, "loop"} {
		if err := os.Symlink(to, filepath.Join(at, fmt.Sprint("link-", i))); err != nil {
			return err
		}
	}
	return os.Symlink("loop", filepath.Join(at, "loop"))
}

// deepChain is deeper than a path can name.
func deepChain(at string, random *rand.Rand) error {
	dir, err := unix.Open(at, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	name := strings.Repeat("d", 1+random.IntN(200))
	for i := 0; err == nil && i < 200+random.IntN(200); i++ {
		if err = unix.Mkdirat(dir, name, 0o755); err != nil {
			break
		}
		var next int
		if next, err = unix.Openat(dir, name, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Close(dir)
			dir = next
		}
	}
	_ = unix.Close(dir)
	return err
}

// everyByte has a name for each byte, and long ones.
func everyByte(at string, random *rand.Rand) error {
	for b := 1; b < 256; b++ {
		name := string([]byte{byte(b), byte(1 + random.IntN(255))})
		if b == '/' || name[1] == '/' || name == ".." {
			continue
		}
		if err := os.Mkdir(filepath.Join(at, name), 0); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.WriteFile(filepath.Join(at, strings.Repeat("\xff", 255)), nil, 0)
}

// special are things that are no files.
func special(at string, _ *rand.Rand) error {
	for i, mode := range []uint32{unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR, unix.S_IFBLK} {
		if err := unix.Mknod(filepath.Join(at, fmt.Sprint("node-", i)), mode|0o666, int(unix.Mkdev(1, 3))); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(at, "sparse"))
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(1<<40), file.Close())
}

// stirWhileRemoved deletes the volume, and renames what is in its copy while that is removed.
func (v *volume) stirWhileRemoved() {
	dir := filepath.Join(v.s.Store, "copies", v.handle)
	if v.holder != nobody || v.mark == "" || v.condemned {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		v.wrong("open the copy: %v", err)
		return
	}
	defer root.Close()
	v.unmade(v.names[:]...)
	for end := time.Now().Add(time.Duration(v.random.IntN(300)) * time.Millisecond); time.Now().Before(end); {
		names, _ := fs.ReadDir(root.FS(), ".")
		for _, entry := range names {
			if entry.Name() == markName {
				continue
			}
			v.serial++
			to := fmt.Sprint("stirred-", v.serial)
			if other := names[v.random.IntN(len(names))]; other.IsDir() && v.random.IntN(2) == 0 {
				to = other.Name() + "/" + to
			}
			_ = root.Rename(entry.Name(), to) // It may be gone.
			_ = root.Mkdir("more", 0o755)
		}
	}
	v.stirred = true
}

// canary is a directory that nothing may touch.
type canary struct {
	dir  string
	seal string
}

func newCanary(t testing.TB, dir string) canary {
	t.Helper()
	if err := os.MkdirAll(dir+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "sub/file"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not the driver's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := canary{dir: dir}
	c.seal = c.look()
	return c
}

// look tells all of it, but for when it was last read.
func (c canary) look() string {
	digest := sha256.New()
	err := filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(digest, path, info.Mode(), info.ModTime().UnixNano(), info.Size())
		if !entry.IsDir() {
			content, err := os.ReadFile(path)
			_, _ = fmt.Fprintln(digest, string(content), err)
		}
		return nil
	})
	return fmt.Sprintf("%x %v", digest.Sum(nil), err)
}
