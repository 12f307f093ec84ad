package watch

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Trees next to and inside of each other: each hears of its own, as long as it runs.
func TestSeveralTrees(t *testing.T) {
	dir := t.TempDir()
	trees := New()
	roots := map[string]string{"outer": dir, "inner": filepath.Join(dir, "inner"), "innermost": filepath.Join(dir, "inner/most")}
	if err := os.MkdirAll(filepath.Join(dir, "inner/most/d"), 0o755); err != nil {
		t.Fatal(err)
	}
	owners := map[string]*owner{}
	for name, root := range roots {
		owners[name] = start(t, trees, root)
		owners[name].calm()
	}
	hears := func(name string) {
		t.Helper()
		file := filepath.Join(dir, "inner/most/d/f")
		write(t, file, name+strconv.Itoa(len(owners)))
		want, _ := filepath.Rel(roots[name], file)
		if paths, _ := owners[name].announced(t); !slices.Contains(paths, want) {
			t.Fatalf("%s heard of %q", name, paths)
		}
		// The others' marker is in this one.
		for _, other := range owners {
			other.calm()
		}
	}
	for _, name := range []string{"outer", "inner", "innermost"} {
		hears(name)
	}
	for i, stop := range []string{"inner", "outer"} {
		owners[stop].w.Stop()
		delete(owners, stop)
		for name := range owners {
			hears(name)
			if got, want := len(owners[name].w.held().sorted), []int{5, 2}[i]; i == 1 && got != want {
				t.Fatalf("%d directories are watched, want %d", got, want)
			}
		}
	}
	owners["innermost"].w.Stop()
	if left := watchesHeld(); len(left) != 0 {
		t.Fatalf("%d watches are left: %v", len(left), left)
	}
}

// Stop leaves nothing behind, whatever the tree went through.
func TestStopLeavesNothing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	p := play{root: root, outside: filepath.Join(root, "../outside")}
	for _, dir := range []string{root, p.outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	trees := New()
	start(t, trees, root).w.Stop() // notify's own goroutines run from here on.
	before := runtime.NumGoroutine()
	for range 5 {
		o := start(t, trees, root)
		for range 20 {
			p.deep(filepath.Join(root, "a"), "")
			p.swap(filepath.Join(root, "a"), filepath.Join(root, "b"))
			p.moveOut(filepath.Join(root, "a.old"), "")
			p.remake(filepath.Join(root, "c"), "")
			p.removeAll(filepath.Join(root, "a"), "")
			o.follow()
		}
		o.w.Stop()
		// notify may still be at the last events, and then watches what is told by them.
		waitFor(t, "no watch is left", func() bool { return len(watchesHeld()) == 0 })
	}
	waitFor(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to this: %s; held %v", what, watchesHeld())
		}
	}
}

// Trees come and go while others are used, for the race detector.
func TestTreesComeAndGo(t *testing.T) {
	trees := New()
	var all sync.WaitGroup
	for range 4 {
		root := t.TempDir()
		all.Go(func() {
			for i := range 5 {
				o := start(t, trees, root)
				grow(t, filepath.Join(root), 1)
				o.calm()
				if err := os.Rename(filepath.Join(root, "d0"), filepath.Join(root, "old"+strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
				o.converge()
				o.w.Stop()
			}
		})
	}
	all.Wait()
}

// What notify opens is no child's: git's hooks and helpers could end the watch.
func TestChildrenInheritNothing(t *testing.T) {
	w, err := New().Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	list := func(command string) string {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		return string(output)
	}
	// The shell's own pipes are those of its output.
	seen := list("ls -l /proc/$$/fd | grep -v ' [012] -> '")
	for _, ours := range []string{"inotify", "eventpoll"} {
		if strings.Contains(seen, ours) {
			t.Errorf("a child has notify's %s:\n%s", ours, seen)
		}
	}
	for _, epoll := range descriptors("anon_inode:[eventpoll]") {
		for _, target := range epollTargets(epoll) {
			link, err := os.Readlink(filepath.Join(fdDirectory, target))
			if err == nil && strings.HasPrefix(link, "pipe:") && strings.Contains(seen, link) && slices.Contains(notifyPipes(), link) {
				t.Errorf("a child has notify's %s:\n%s", link, seen)
			}
		}
	}
}

// notifyPipes are the pipes that notify's epoll instance waits for.
func notifyPipes() []string {
	var pipes []string
	inotify := descriptors(inotifyLink)
	for _, epoll := range descriptors("anon_inode:[eventpoll]") {
		targets := epollTargets(epoll)
		if !slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(inotify, t) }) {
			continue
		}
		for _, target := range targets {
			if link, _ := os.Readlink(filepath.Join(fdDirectory, target)); strings.HasPrefix(link, "pipe:") {
				pipes = append(pipes, link)
			}
		}
	}
	return pipes
}
