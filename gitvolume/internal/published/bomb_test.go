package published_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// onSmallDisk is a node whose store has a disk of that size.
func onSmallDisk(t *testing.T, size, kept int64) *node {
	t.Helper()
	n := newNode(t)
	n.stop()
	n.must(os.RemoveAll(n.dir))
	n.must(os.Mkdir(n.dir, 0o700))
	n.must(unix.Mount("none", n.dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)))
	t.Cleanup(func() {
		n.stop()
		_ = unix.Unmount(n.dir, unix.MNT_DETACH)
	})
	n.minFree = store.Free{Bytes: kept}
	return n.start()
}

// A repository of some kilobytes stands for more files than the disk has room for: its volume
// is refused before the disk is full, what was written of them goes, and others go on.
func TestARepositoryThatIsABomb(t *testing.T) {
	const size, kept = 48 << 20, 16 << 20
	n := onSmallDisk(t, size, kept)
	bomb := gittest.NewBare(t)
	blob := strings.Repeat("0", 4<<20)
	files := map[string]string{}
	for i := range 2 * size / len(blob) {
		files[fmt.Sprint("f", i)] = blob
	}
	bomb.Put("main", files)
	calm := n.claimed("calm", "a", urlOf(remoteWith(t, "1"))).published()
	for range 2 {
		if err := n.inline("b", urlOf(bomb)).publish(); !errors.Is(err, store.ErrFull) {
			t.Fatalf("%v, want that the store is full", err)
		}
		left, err := filepath.Glob(filepath.Join(n.dir, "checkouts", "*", "tree", "*"))
		if err != nil || len(left) != 1 {
			t.Errorf("left is %q, %v", left, err)
		}
	}
	calm.shows("f", "1")
	n.claimed("other", "c", urlOf(remoteWith(t, "2"))).published().shows("f", "2")
}

// A server that sends a pack without end fills the disk no further than to what is kept free:
// what it sent goes, and others go on.
func TestARepositoryWithoutEnd(t *testing.T) {
	n := onSmallDisk(t, 128<<20, 40<<20)
	var err error
	n.addresses, err = attributes.ParseAddresses([]string{"127.0.0.1"})
	n.must(err)
	n.restart()
	calm := n.claimed("calm", "a", urlOf(remoteWith(t, "1"))).published()
	for range 2 {
		if err := n.inline("b", gittest.Endless(t)).publish(); !errors.Is(err, store.ErrFull) || !errors.Is(err, remote.ErrNoRoom) {
			t.Fatalf("%v, want that the store is full", err)
		}
		left, err := filepath.Glob(filepath.Join(n.dir, "repos", "*", "objects", "*", "tmp_*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left is %q, %v", left, err)
		}
		n.must(n.store.CheckFree())
	}
	calm.shows("f", "1")
	n.claimed("other", "c", urlOf(remoteWith(t, "2"))).published().shows("f", "2")
}
