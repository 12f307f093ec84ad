package main

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/csicommon/handle"
)

// Whatever a directory is called, its volume has a name.
func TestEveryDirectoryHasAHandle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, 80, 255).Draw(t, "name")
		p := place{dir: filepath.Join("/home", strings.ReplaceAll(name, "/", "-"))}
		if err := handle.Check(p.handle()); err != nil {
			t.Error(err)
		}
		other := place{dir: p.dir + "x"}
		if again := (place{dir: p.dir}); again.handle() != p.handle() || other.handle() == p.handle() {
			t.Errorf("the handles are %q and %q", p.handle(), other.handle())
		}
	})
}

func TestDefaultStore(t *testing.T) {
	for name, row := range map[string]struct{ state, home, want string }{
		"as the user has it":     {"/state", "/home/me", "/state/gitvolume/my-notes-"},
		"without XDG_STATE_HOME": {"", "/home/me", "/home/me/.local/state/gitvolume/my-notes-"},
		"with a relative one":    {"state", "/home/me", "/home/me/.local/state/gitvolume/my-notes-"},
		"without a home":         {"", "", ""},
	} {
		t.Setenv("XDG_STATE_HOME", row.state)
		t.Setenv("HOME", row.home)
		p := place{dir: "/home/me/My notes"}
		store, err := p.defaultStore()
		if (row.want == "") != (err != nil) || !strings.HasPrefix(store, row.want) {
			t.Errorf("%s: %q, %v, want %q", name, store, err, row.want)
		}
	}
}
