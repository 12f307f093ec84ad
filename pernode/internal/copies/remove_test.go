package copies

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func allow() error { return nil }

func TestRemoveMovesTheCopyToTheTrash(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(os.WriteFile(filepath.Join(f.target("1"), "file"), nil, 0o600))
	if err := f.store.Remove(t.Context(), "h1", allow); !errors.Is(err, ErrHeld) {
		t.Errorf("remove of a held copy: %v, want ErrHeld", err)
	}
	f.must(f.unpublish("h1", "1"))
	refused := errors.New("named again")
	if err := f.store.Remove(t.Context(), "h1", func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v, want the confirmation's error", err)
	}
	if !f.exists(filepath.Join(f.copyPath("h1"), "file")) {
		t.Fatal("a copy went that was not to go")
	}
	f.must(f.store.Remove(t.Context(), "h1", allow))
	if f.exists(f.copyPath("h1")) {
		t.Error("the copy is still there")
	}
	f.must(f.publish("h1", "2"))
	if f.exists(filepath.Join(f.target("2"), "file")) {
		t.Error("the volume made again shows the old copy")
	}
}

func TestTheTrashIsEmptiedAfterARestart(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
	f.must(f.store.Remove(t.Context(), "h1", allow))
	f.restart()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.store.EmptyTrash(ctx); close(ended) }()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left, err := os.ReadDir(filepath.Join(f.dir, trashDir))
		f.must(err)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d things still in the trash", len(left))
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-ended
}

// A hold or mount made with the wrong name must not stand in for the copy's: the
// full table is read right before a removal.
func TestAMountMadeByHandHoldsTheCopy(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
	elsewhere := t.TempDir()
	f.command("mount", "--bind", f.copyPath("h1"), elsewhere)
	t.Cleanup(func() { f.command("umount", elsewhere) })
	if err := f.store.Remove(t.Context(), "h1", allow); !errors.Is(err, ErrHeld) {
		t.Errorf("remove: %v, want ErrHeld", err)
	}
	if err := f.publish("h1", "2"); !errors.Is(err, ErrHeld) {
		t.Errorf("publish: %v, want ErrHeld", err)
	}
}
