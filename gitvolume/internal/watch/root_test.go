package watch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestStartRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	for name, wrapsRoot := range map[string]bool{"missing": false, "file": true, "loop": false, "/": true} {
		root := name
		if name != "/" {
			root = filepath.Join(dir, name)
		}
		w, err := New().Start(root)
		if err == nil {
			w.Stop()
			t.Errorf("%s is watched", name)
			continue
		}
		if errors.Is(err, ErrRoot) != wrapsRoot {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLinkedRoot(t *testing.T) {
	dir := t.TempDir()
	for _, made := range []string{"real.../root...", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real...", link); err != nil {
		t.Fatal(err)
	}
	o := start(t, New(), filepath.Join(link, "root..."))
	defer o.w.Stop()
	o.calm()
	// The link is of no concern any more.
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", link); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "real.../root.../f"), "x")
	if paths, _ := o.announced(t); !slices.Equal(paths, []string{"f"}) {
		t.Fatalf("announced %q", paths)
	}
}

func TestRootGone(t *testing.T) {
	for name, change := range map[string]func(root string) error{
		"deleted": os.RemoveAll,
		"moved":   func(root string) error { return os.Rename(root, root+".moved") },
		"replaced": func(root string) error {
			return errors.Join(os.Rename(root, root+".moved"), os.Mkdir(root, 0o755))
		},
		"replaced by a link": func(root string) error {
			return errors.Join(os.Rename(root, root+".moved"), os.Symlink(root+".moved", root))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			grow(t, root, 2)
			o := start(t, New(), root)
			defer o.w.Stop()
			o.calm()
			if err := change(root); err != nil {
				t.Fatal(err)
			}
			o.until("gone", func(h Hint) bool { return h.Gone })
			if h := o.w.TakeAll(); !h.Gone {
				t.Fatal("it came back")
			}
		})
	}
}

// Nothing tells that a root that somebody holds open was removed, or that a directory
// above was moved; the next scan notices.
func TestRootGoneInSilence(t *testing.T) {
	for name, change := range map[string]func(root string) error{
		"removed and made again": func(root string) error { return errors.Join(os.Remove(root), os.Mkdir(root, 0o755)) },
		"parent moved":           func(root string) error { return os.Rename(filepath.Dir(root), filepath.Dir(root)+".moved") },
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "parent", "root")
			if err := os.MkdirAll(root, 0o755); err != nil {
				t.Fatal(err)
			}
			holder, err := os.Open(root)
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Close()
			o := start(t, New(), root)
			defer o.w.Stop()
			o.calm()
			if err := change(root); err != nil {
				t.Fatal(err)
			}
			if h := o.w.TakeAll(); !h.Gone || h.Empty() {
				t.Fatalf("%+v", h)
			}
		})
	}
}
