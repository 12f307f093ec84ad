package published_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/store"
)

// A repository of some kilobytes stands for more files than the disk has room for: its volume
// is refused before the disk is full, what was written of them goes, and others go on.
func TestARepositoryThatIsABomb(t *testing.T) {
	const size, kept = 48 << 20, 16 << 20
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
	n.start()
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
