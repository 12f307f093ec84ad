package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/history"
)

// A repository is blamed for not opening only where the machine can open files at all, and
// it does not open a second time either.
func TestBlameForOpening(t *testing.T) {
	failed := errors.New("could not open config: too many open files") // As libgit2 says it.
	sound := filepath.Join(t.TempDir(), "r.git")
	if err := history.Create(sound); err != nil {
		t.Fatal(err)
	}
	if err := BlameForOpening(sound, failed); errors.Is(err, history.ErrDamaged) || !errors.Is(err, failed) {
		t.Errorf("one that opens by now: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "r.git")
	if err := history.Create(broken); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "config"), []byte("[core"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := BlameForOpening(broken, failed); !errors.Is(err, history.ErrDamaged) || !errors.Is(err, failed) {
		t.Errorf("one that is broken: %v", err)
	}
	if err := BlameForOpening(broken, unix.EMFILE); errors.Is(err, history.ErrDamaged) || !IsOfTheMachine(err) {
		t.Errorf("one of a machine that opens nothing: %v", err)
	}
}
