package watch

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// noSymfollow is MS_NOSYMFOLLOW, of Linux 5.10.
const noSymfollow = 0x100

// notify follows a link that takes the place of a directory before it comes to watch
// it. On a mount that follows none it cannot be led out of the tree.
func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	mountns.Require(t)
	dir := mountns.SharedDir(t)
	a := attack{root: filepath.Join(dir, "tree"), dir: dir}
	bare := filepath.Join(dir, "bare")
	for _, made := range []string{a.root, bare, filepath.Join(dir, "outside")} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tries := a.succeeds(t, a.root, 200)
	if tries == 0 {
		t.Skip("notify is too quick here to be led out of the tree")
	}
	t.Logf("led out of the tree in try %d", tries)
	if err := unix.Mount(a.root, bare, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", bare, "", unix.MS_BIND|unix.MS_REMOUNT|noSymfollow, ""); err != nil {
		t.Skipf("this kernel has no mounts that follow no links: %v", err)
	}
	if tries := a.succeeds(t, bare, tries+4); tries != 0 {
		t.Fatalf("led out of the tree in try %d", tries)
	}
}

// attack is an application's attempt to have a directory outside watched.
type attack struct {
	root, dir string
	count     int
}

// succeeds returns in which try it does, or 0.
func (a *attack) succeeds(t *testing.T, watched string, most int) int {
	t.Helper()
	o := start(t, New(), watched)
	defer o.w.Stop()
	o.calm()
	outside, err := inodeOf(filepath.Join(a.dir, "outside"))
	if err != nil {
		t.Fatal(err)
	}
	for try := range most {
		a.try(t)
		// Once a directory made later is watched, notify got to the attempt most likely.
		last := filepath.Join(a.root, "last"+strconv.Itoa(a.count))
		if err := os.Mkdir(last, 0o755); err != nil {
			t.Fatal(err)
		}
		inode, err := inodeOf(last)
		if err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(patient)
		held := o.w.held()
		for ; !held.has(inode); held = o.w.held() {
			if time.Now().After(deadline) {
				t.Fatal("a directory is never watched")
			}
		}
		if held.has(outside) {
			return try + 1
		}
		o.converge()
	}
	return 0
}

// try makes a directory, moves it out while notify is busy, and puts a link there.
func (a *attack) try(t *testing.T) {
	t.Helper()
	a.count++
	busy := filepath.Join(a.dir, "busy"+strconv.Itoa(a.count))
	for i := range 100 {
		if err := os.MkdirAll(filepath.Join(busy, strconv.Itoa(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	place := filepath.Join(a.root, "place"+strconv.Itoa(a.count))
	for _, step := range []func() error{
		func() error { return os.Rename(busy, filepath.Join(a.root, filepath.Base(busy))) },
		func() error { return os.Mkdir(place, 0o755) },
		func() error { return os.Rename(place, filepath.Join(a.dir, filepath.Base(place))) },
		func() error { return os.Symlink(filepath.Join(a.dir, "outside"), place) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}
