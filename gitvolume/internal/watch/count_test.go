package watch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	trees := New()
	trees.most = 10
	for name, test := range map[string]struct {
		make string
		more bool
	}{
		"as many as may be, side by side": {"a b c d e f g h i", false},
		"one more":                        {"a b c d e f g h i j", true},
		"as many, in each other":          {"a/b/c/d/e/f/g/h/i", false},
		"one more in each other":          {"a/b/c/d/e/f/g/h/i/j", true},
		"as many, of both":                {"a/b/c a/d/e f/g/h/i", false},
		"one more of both":                {"a/b/c a/d/e f/g/h/i f/j", true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for dir := range strings.FieldsSeq(test.make) {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			// Neither files nor links count, and links lead nowhere.
			for _, file := range strings.Fields("f1 f2 f3 a/f1 a/f2") {
				write(t, filepath.Join(root, file), "")
			}
			for _, link := range []string{"l1", "l2", "a/l1", "a/l2"} {
				if err := os.Symlink(root, filepath.Join(root, link)); err != nil {
					t.Fatal(err)
				}
			}
			w := &Watch{trees: trees, path: root}
			want := 10
			if test.more {
				want = 11
			}
			if got := w.count(); got != want {
				t.Errorf("counted %d, want %d", got, want)
			}
		})
	}
}

// A tree that is too large is never given to notify, not even until the first look.
func TestStartWithTooManyDirectories(t *testing.T) {
	root := t.TempDir()
	grow(t, root, 10)
	trees := New()
	trees.most = 10
	o := start(t, trees, root)
	defer o.w.Stop()
	if held := len(watchesHeld()); held != 0 {
		t.Errorf("%d directories are watched", held)
	}
	if !o.w.renewedAt.IsZero() {
		t.Error("the watches were set up")
	}
	if state := o.w.State(); !strings.HasPrefix(state.Reason, "the tree has too many directories") || state.Missing == 0 {
		t.Errorf("before the first look: %+v", state)
	}
	o.converge()
	o.restless(t)
	if state := o.w.State(); !state.Degraded || state.Missing != 11 {
		t.Errorf("after looks: %+v", state)
	}
	if err := os.RemoveAll(filepath.Join(root, "d0")); err != nil {
		t.Fatal(err)
	}
	o.calm()
}

// Directories that are ignored are watched by notify, and never told of by the owner.
func TestTooManyIgnoredDirectories(t *testing.T) {
	root := t.TempDir()
	trees := New()
	trees.most = 10
	o := start(t, trees, root)
	defer o.w.Stop()
	o.calm()
	grow(t, root, 10)
	for range 3 {
		h := o.w.TakeAll()
		o.w.Check(h, func(yield func(string, Inode) bool) { yield(".", o.w.self) })
		if state := o.w.State(); !strings.HasPrefix(state.Reason, "the tree has too many directories") {
			t.Fatalf("%+v", state)
		}
	}
	waitFor(t, "no watch is left", func() bool { return len(watchesHeld()) == 0 })
}

// A tree that grows while its owner is busy is refused as it comes over the limit: what it
// may grow to until the owner looks would take notify minutes to forget.
func TestGrowthIsRefusedBeforeTheLook(t *testing.T) {
	root := t.TempDir()
	trees := New()
	trees.most = 10
	o := start(t, trees, root)
	defer o.w.Stop()
	o.calm()
	// What goes again makes room.
	for range 2 {
		grow(t, root, 5)
		o.calm()
		for i := range 5 {
			if err := os.RemoveAll(filepath.Join(root, "d"+strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
		o.calm()
	}
	o.w.mu.Lock()
	if o.w.directories != 1 {
		t.Errorf("%d directories are left", o.w.directories)
	}
	o.w.mu.Unlock()
	grow(t, root, 20)
	waitFor(t, "the tree is refused", func() bool {
		return strings.HasPrefix(o.w.State().Reason, "the tree has too many directories") && len(watchesHeld()) == 0
	})
	for i := range 20 {
		if err := os.RemoveAll(filepath.Join(root, "d"+strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	o.calm()
}
