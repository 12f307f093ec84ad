package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/logtest"
)

// patience is for a slow and loaded machine; nothing waits that long in vain.
const patience = 2 * time.Minute

// tick is by how much the kernel's time of a file may be behind the clock, and more.
const tick = 20 * time.Millisecond

// place is a store with a bin, on the real file system.
type place struct {
	path, bin string
	dir       *os.File
	lines     logtest.Log
	Bin       *Bin

	mu      sync.Mutex
	removed []Removed
	keep    time.Duration
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{path: t.TempDir()}
	p.bin = filepath.Join(p.path, "bin")
	check(t, os.Mkdir(p.bin, 0o700))
	dir, err := os.Open(p.path)
	check(t, err)
	t.Cleanup(func() { check(t, dir.Close()) })
	p.dir = dir
	p.reopen(t)
	return p
}

func (p *place) isEmpty() bool { return p.Bin.Pending() == 0 }

// reopen stands for a restart of the process.
func (p *place) reopen(t *testing.T) {
	t.Helper()
	dir, err := os.Open(p.bin)
	check(t, err)
	defer dir.Close() // Open has its own.
	bin, err := Open(Config{
		Dir:  dir,
		Log:  p.lines.Logger(),
		Keep: p.keep,
		Removed: func(r Removed) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.removed = append(p.removed, r)
		},
	})
	check(t, err)
	t.Cleanup(func() { check(t, bin.dir.Close()) })
	p.Bin = bin
}

// run runs the bin until the returned function is called.
func (p *place) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Bin.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

// emptied waits until all is deleted and checks that it is.
func (p *place) emptied(t *testing.T) {
	t.Helper()
	until(t, "the bin is empty", p.isEmpty)
	left, err := os.ReadDir(p.bin)
	check(t, err)
	if len(left) != 0 {
		t.Errorf("left in the bin: %v", left)
	}
}

func (p *place) all() []Removed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Removed(nil), p.removed...)
}

func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// tree makes a small directory with something of everything, 12 inodes.
func tree(t *testing.T, path, outside string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Join(path, "a", "b", "c"), 0o755))
	check(t, os.Mkdir(filepath.Join(path, "shut"), 0o755))
	write(t, filepath.Join(path, "shut", "f"), 1)
	check(t, os.Chmod(filepath.Join(path, "shut"), 0))
	write(t, filepath.Join(path, "a", "one"), 100_000)
	check(t, os.Link(filepath.Join(path, "a", "one"), filepath.Join(path, "a", "b", "two")))
	check(t, os.Symlink(outside, filepath.Join(path, "out")))
	check(t, os.Symlink("loop", filepath.Join(path, "a", "loop")))
	check(t, unix.Mkfifo(filepath.Join(path, "fifo"), 0))
	check(t, os.Mkdir(filepath.Join(path, "new\nline\xff"), 0o755))
	write(t, filepath.Join(path, strings.Repeat("n", 255)), 1)
}

const treeInodes = 12

// sentinel makes a directory that must not be touched, and the check of that.
func sentinel(t *testing.T) (path string, untouched func()) {
	t.Helper()
	path = t.TempDir()
	for i := range 10 {
		check(t, os.MkdirAll(filepath.Join(path, fmt.Sprint(i), "d"), 0o755))
		write(t, filepath.Join(path, fmt.Sprint(i), "d", "f"), 10)
	}
	return path, func() {
		t.Helper()
		for i := range 10 {
			if _, err := os.Stat(filepath.Join(path, fmt.Sprint(i), "d", "f")); err != nil {
				t.Errorf("outside of the bin: %v", err)
			}
		}
	}
}

func chain(t *testing.T, top string, depth int) {
	t.Helper()
	check(t, os.Mkdir(top, 0o755))
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	check(t, err)
	for range depth {
		check(t, unix.Mkdirat(fd, "directory", 0o755))
		next, err := unix.Openat(fd, "directory", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		check(t, err)
		check(t, unix.Close(fd))
		fd = next
	}
	check(t, unix.Close(fd))
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	check(t, os.WriteFile(path, make([]byte, size), 0o644))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
