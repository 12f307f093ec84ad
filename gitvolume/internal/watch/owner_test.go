package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patient is the deadline for what has to happen at some time on a loaded machine.
const patient = 60 * time.Second

// tester is the part of testing.TB that rapid.T has too.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// entry is what an owner remembers of a path.
type entry struct {
	inode    Inode
	mode     uint32
	uid, gid uint32
	size     int64
	written  unix.Timespec
}

// owner keeps a model of a tree by hints alone, as a writeable volume does.
type owner struct {
	t     tester
	w     *Watch
	model map[string]entry
	whole int // Looks at everything.
	scans int // Those of its own accord.
	hints []Hint
}

func start(t tester, trees *Trees, root string) *owner {
	t.Helper()
	w, err := trees.Start(root)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return &owner{t: t, w: w, model: map[string]entry{}}
}

func (o *owner) look(h Hint) {
	o.hints = append(o.hints, h)
	dirs := map[string]Inode{}
	if h.Everything {
		o.whole++
		old := o.model
		o.model = map[string]entry{}
		o.walk(".", dirs)
		o.compare(h, old)
		o.w.Check(h, maps.All(dirs))
		return
	}
	for _, path := range h.Subtrees {
		o.forget(path)
		o.walk(path, dirs)
	}
	for _, path := range h.Paths {
		now, err := lstat(o.w.Root(), path)
		if err != nil || !now.isDir() {
			o.forget(path)
		}
		if err == nil {
			o.model[path] = now
		}
	}
	if len(h.Subtrees) > 0 {
		o.w.Check(h, maps.All(dirs))
	}
}

// compare tells the watch what a look at everything found.
func (o *owner) compare(h Hint, old map[string]entry) {
	for path, now := range o.model {
		if old[path] != now {
			o.w.Found(h, path)
		}
	}
	for path := range old {
		if _, there := o.model[path]; !there {
			o.w.Found(h, path)
		}
	}
}

// scan is what the owner does from time to time.
func (o *owner) scan() {
	o.scans++
	o.look(o.w.TakeAll())
}

func (o *owner) forget(path string) {
	for known := range o.model {
		if known == path || strings.HasPrefix(known, path+"/") {
			delete(o.model, known)
		}
	}
}

func (o *owner) walk(path string, dirs map[string]Inode) {
	walk(o.w.Root(), path, func(path string, now entry) {
		o.model[path] = now
		if now.isDir() {
			dirs[path] = now.inode
		}
	})
}

// converge follows hints, and scans while the watch is degraded, until the model is
// the tree.
func (o *owner) converge() {
	o.t.Helper()
	deadline := time.Now().Add(patient)
	for {
		o.follow()
		real := tree(o.w.Root())
		if maps.Equal(o.model, real) {
			return
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("the hints do not lead to the tree: %s; state %+v; watched %t; last hints %s", difference(o.model, real), o.w.State(), o.watched(), o.last())
		}
		if o.w.State().Degraded {
			o.scan()
		}
		o.wait(5 * time.Millisecond)
	}
}

// last is the last hints in words.
func (o *owner) last() string {
	var words []string
	for _, h := range o.hints[max(0, len(o.hints)-5):] {
		words = append(words, fmt.Sprintf("{%t %q %q renewed %t}", h.Everything, h.Subtrees, h.Paths, h.renewed))
	}
	return strings.Join(words, " ")
}

// until follows hints until one satisfies.
func (o *owner) until(what string, satisfies func(Hint) bool) {
	o.t.Helper()
	deadline := time.Now().Add(patient)
	for next := 0; ; {
		o.follow()
		for ; next < len(o.hints); next++ {
			if satisfies(o.hints[next]) {
				return
			}
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("no hint says %s; last %s", what, o.last())
		}
		o.wait(time.Second)
	}
}

// follow takes all hints there are.
func (o *owner) follow() {
	for {
		select {
		case <-o.w.C():
			o.look(o.w.Take())
		default:
			return
		}
	}
}

// wait waits for a hint, some time at most, and leaves it.
func (o *owner) wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-o.w.C():
		o.w.signal()
	case <-timer.C:
	}
}

// calm follows hints until the tree is known and nothing more is to come, when every
// watch has to be held; and forgets what it counted.
func (o *owner) calm() {
	o.t.Helper()
	o.converge()
	deadline := time.Now().Add(patient)
	for o.w.State().Degraded || !o.settled() {
		if time.Now().After(deadline) {
			o.t.Fatalf("no calm: %+v", o.w.State())
		}
		if o.w.State().Degraded {
			o.scan()
		}
		o.wait(settle)
		o.follow()
	}
	if !o.watched() {
		o.t.Fatalf("a directory is not watched when all is calm; last hints %s", o.last())
	}
	o.hints, o.whole, o.scans = nil, 0, 0
}

// settled says that nothing is to be looked at once more.
func (o *owner) settled() bool {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	return o.w.settling.timer == nil && o.w.pending.empty()
}

// watched says whether the kernel watches all directories of the model.
func (o *owner) watched() bool {
	held := o.w.held()
	for _, e := range o.model {
		if e.isDir() && !held.has(e.inode) {
			return false
		}
	}
	return true
}

func (e entry) isDir() bool { return e.mode&unix.S_IFMT == unix.S_IFDIR }

// tree is the real one.
func tree(root string) map[string]entry {
	model := map[string]entry{}
	walk(root, ".", func(path string, now entry) { model[path] = now })
	return model
}

func walk(root, path string, visit func(string, entry)) {
	now, err := lstat(root, path)
	if err != nil {
		return
	}
	visit(path, now)
	if !now.isDir() {
		return
	}
	entries, err := os.ReadDir(filepath.Join(root, path))
	if err != nil {
		return
	}
	for _, e := range entries {
		walk(root, filepath.Join(path, e.Name()), visit)
	}
}

// lstat follows no link on the way either.
func lstat(root, path string) (entry, error) {
	for i := range path {
		if path[i] != '/' {
			continue
		}
		if above, err := stat(filepath.Join(root, path[:i])); err != nil || !above.isDir() {
			return entry{}, errors.Join(fs.ErrNotExist, err)
		}
	}
	return stat(filepath.Join(root, path))
}

func stat(path string) (entry, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return entry{}, err
	}
	e := entry{inode: Inode{stat.Dev, stat.Ino}, mode: stat.Mode, uid: stat.Uid, gid: stat.Gid}
	if !e.isDir() { // A directory's own times follow its entries.
		e.size, e.written = stat.Size, stat.Mtim
	}
	return e, nil
}

func difference(model, real map[string]entry) string {
	var words []string
	for path, want := range real {
		if got, met := model[path]; !met {
			words = append(words, fmt.Sprintf("%q is not known", path))
		} else if got != want {
			words = append(words, fmt.Sprintf("%q is %+v, known as %+v", path, want, got))
		}
	}
	for path := range model {
		if _, met := real[path]; !met {
			words = append(words, fmt.Sprintf("%q is gone, but known", path))
		}
	}
	slices.Sort(words)
	return strings.Join(words[:min(len(words), 5)], "; ")
}
