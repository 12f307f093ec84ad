package remote

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

// TestGCGivesWay to what a pod waits for, as soon as one does, and does not begin before that
// has the repository.
func TestGCGivesWay(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	c, store := newCommand(t, withGit(t, "touch "+begun+"; exec sleep 600")), gittest.NewBare(t)
	ended := make(chan error, 1)
	go func() { ended <- c.GC(t.Context(), store.Dir) }()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no collection begins")
		}
	}
	urgent, locked := make(chan struct{}), make(chan func(), 1)
	go func() {
		unlock, err := c.lockBeforeGC(t.Context(), store.Dir, urgent)
		if err != nil {
			t.Error(err)
		}
		locked <- unlock
	}()
	select {
	case <-locked:
		t.Fatal("it did not wait")
	case <-ended:
		t.Fatal("the collection ended before anybody waited")
	case <-time.After(100 * time.Millisecond):
	}
	close(urgent)
	unlock := <-locked
	wantError(t, <-ended, ErrGaveWay)
	unlock()

	leave := c.collections.await(store.Dir)
	wantError(t, c.GC(t.Context(), store.Dir), ErrGaveWay)
	leave()
	if len(c.collections.awaited) != 0 || len(c.collections.of) != 0 {
		t.Errorf("%v and %v are kept", c.collections.awaited, c.collections.of)
	}
}
