package watch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// grow makes directories with a file each.
func grow(t *testing.T, root string, directories int) {
	t.Helper()
	for i := range directories {
		dir := filepath.Join(root, "d"+strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "f"), "1")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// C23: too few watches, then enough.
func TestFewWatches(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	limit(t, "max_inotify_watches", "64")
	root := t.TempDir()
	o := start(t, New(), root)
	defer o.w.Stop()
	o.converge()
	if state := o.w.State(); state != (State{}) {
		t.Fatalf("an empty tree: %+v", state)
	}
	grow(t, root, 500)
	o.converge()
	// The subtrees that were hinted at lack watches, and so the whole tree is to be looked
	// at: by a hint, or by a scan where it is too soon to set up the watches again.
	for deadline := time.Now().Add(patient); o.w.State().Missing != 501-64; o.wait(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("64 watches for 501 directories: %+v", o.w.State())
		}
		if o.w.State().Degraded {
			o.scan()
		}
		o.follow()
	}
	if state := o.w.State(); !state.Degraded {
		t.Fatalf("64 watches for 501 directories: %+v", state)
	}
	o.restless(t)

	// Scans find what nothing announces.
	for i := range 500 {
		write(t, filepath.Join(root, "d"+strconv.Itoa(i), "f"), "x2")
	}
	o.converge()
	if o.scans == 0 {
		t.Fatal("the events of 64 directories told of changes in 500")
	}

	limit(t, "max_inotify_watches", "100000")
	o.calm()
	write(t, filepath.Join(root, "d400", "f"), "123")
	o.converge()
	if o.whole != 0 {
		t.Fatalf("the raised limit did not repair the watch: last hints %s", o.last())
	}
}

// restless fails if the watch wants one look after another while nothing happens.
func (o *owner) restless(t *testing.T) {
	t.Helper()
	for range 5 {
		o.scan()
	}
	o.follow()
	for !o.settled() {
		o.wait(settle)
		o.follow()
	}
	before := len(o.hints)
	o.scan()
	o.follow()
	if took := len(o.hints) - before; took != 1 {
		t.Fatalf("a scan of a degraded tree led to %d hints: %s", took-1, o.last())
	}
}

// C23: no inotify at all.
func TestNoInstance(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	limit(t, "max_inotify_instances", "0")
	unavailable(t, func() { limit(t, "max_inotify_instances", "10") })
}

// C23: `ulimit -n`.
func TestNoDescriptor(t *testing.T) {
	t.Parallel()
	if !inChild(t) {
		return
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	// Fewer than are open: none can be opened, neither to watch nor to look.
	none := was
	none.Cur = 0
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	set := func(l unix.Rlimit) {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			t.Fatal(err)
		}
	}
	trees := New()
	set(none)
	w, err := trees.Start(root)
	set(was)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if state := w.State(); !state.Degraded {
		t.Fatalf("nothing can be opened: %+v", state)
	}
	o := &owner{t: t, w: w, model: map[string]entry{}}
	o.calm()
	write(t, filepath.Join(root, "f"), "1")
	o.converge()
	if o.whole != 0 {
		t.Fatalf("more descriptors did not repair the watch: last hints %s", o.last())
	}

	// A watch that there is needs no more descriptors.
	set(none)
	made := unix.Mkdir(filepath.Join(root, "made"), 0o755)
	set(was)
	if made != nil {
		t.Fatal(made)
	}
	o.converge()
	o.calm()
	write(t, filepath.Join(root, "made", "f"), "1")
	o.converge()
}

// unavailable is a life without inotify, until more makes it available.
func unavailable(t *testing.T, more func()) {
	t.Helper()
	root := t.TempDir()
	grow(t, root, 3)
	o := start(t, New(), root)
	defer o.w.Stop()
	if state := o.w.State(); !state.Degraded || state.Missing == 0 {
		t.Fatalf("before the first look: %+v", state)
	}
	o.converge()
	o.restless(t)
	if state := o.w.State(); !state.Degraded || state.Missing != 4 {
		t.Fatalf("after looks: %+v", state)
	}
	write(t, filepath.Join(root, "d1", "f"), "x2")
	o.converge()
	more()
	o.calm()
	write(t, filepath.Join(root, "d1", "f"), "123")
	o.converge()
	if o.whole != 0 {
		t.Fatalf("it is not repaired: last hints %s", o.last())
	}
}

// notify is not fit for trees of any size.
func TestTooManyDirectories(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	grow(t, root, 9)
	trees := New()
	trees.most = 10
	o := start(t, trees, root)
	defer o.w.Stop()
	o.calm()
	if err := os.Mkdir(filepath.Join(root, "one"), 0o755); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the tree is refused", func() bool { return o.w.State().Degraded })
	o.scan()
	if state := o.w.State(); !state.Degraded || state.Missing != 11 {
		t.Fatalf("%+v", state)
	}
	for path, e := range o.model {
		if e.isDir() && o.w.held().has(e.inode) {
			t.Errorf("%q is watched", path)
		}
	}
	o.restless(t)
	write(t, filepath.Join(root, "d1/f"), "x2")
	o.converge()
	if err := os.Remove(filepath.Join(root, "one")); err != nil {
		t.Fatal(err)
	}
	o.calm()
	write(t, filepath.Join(root, "d1/f"), "x34")
	if paths, _ := o.announced(t); !slices.Equal(paths, []string{"d1/f"}) {
		t.Fatalf("announced %q", paths)
	}
}

// A directory with a path longer than the kernel takes ends notify's set-up, and so
// must not leave the rest of the tree unwatched without a word.
func TestTooDeep(t *testing.T) {
	root := t.TempDir()
	grow(t, root, 20)
	deep, err := unix.Open(root, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("d9%0200d", 0)
	for range 25 {
		if err := unix.Mkdirat(deep, name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(deep, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(deep)
		deep = next
	}
	unix.Close(deep)
	t.Cleanup(func() { removeDeep(t, root, name) })
	o := start(t, New(), root)
	defer o.w.Stop()
	// The owner's own walk by paths ends where paths do, so the deepest are given here.
	h := o.w.Take()
	dirs := map[string]Inode{}
	o.walk(".", dirs)
	missing := o.w.Check(h, maps.All(dirs))
	if state := o.w.State(); state.Degraded != (missing > 0) || missing == 0 && !o.watched() {
		t.Fatalf("%d watches are missing: %+v", missing, state)
	}
	t.Logf("%d of %d directories have no watch", missing, len(dirs))
}

// removeDeep takes a chain of equally named directories apart from the top.
func removeDeep(t *testing.T, root, name string) {
	t.Helper()
	chain := filepath.Join(root, name)
	for {
		below := filepath.Join(root, "below")
		switch err := os.Rename(filepath.Join(chain, name), below); {
		case os.IsNotExist(err):
			_ = os.Remove(chain)
			return
		case err != nil:
			t.Error(err)
			return
		}
		if err := os.Remove(chain); err != nil {
			t.Error(err)
			return
		}
		if err := os.Rename(below, chain); err != nil {
			t.Error(err)
			return
		}
	}
}
