package remote

import (
	"errors"
	"path/filepath"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestNoRoom: without room a little is fetched as ever, and what has no end is ended.
func TestNoRoom(t *testing.T) {
	full := errors.New("the disk is full")
	c := newCommand(t, func(s *Settings) { s.Room = func() error { return full } })
	here, there := gittest.NewBare(t), gittest.NewBare(t)
	there.Put("main", map[string]string{"f": "1"})
	refs := map[string]string{"refs/heads/main": "refs/x/main"}
	_, err := c.Fetch(t.Context(), Request{Dir: here.Dir, Remote: local(t, there), Refs: refs})
	check(t, err)
	refs["refs/heads/other"] = "refs/x/other"
	_, err = c.Fetch(t.Context(), Request{Dir: here.Dir, Remote: at(t, gittest.Endless(t)), Refs: refs})
	wantError(t, err, ErrNoRoom)
	wantError(t, err, full)
	var failure *Failure
	if !errors.As(err, &failure) {
		t.Errorf("%v is no Failure", err)
	}
	left, err := filepath.Glob(filepath.Join(here.Dir, "objects", "pack", "tmp_*"))
	check(t, err)
	if len(left) > 0 {
		t.Errorf("left is %q", left)
	}
}
