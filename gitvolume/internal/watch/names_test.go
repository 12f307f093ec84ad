package watch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestNamesOfMovedDirectories has notify learn of ever more names, of which it forgets none:
// in the end the tree is scanned, and nothing is missed.
func TestNamesOfMovedDirectories(t *testing.T) {
	trees := New()
	trees.names = 60
	root := t.TempDir()
	o := start(t, trees, root)
	defer o.w.Stop()
	o.calm()

	// Directories that come and go under new names leave nothing behind, or one in eight on a
	// machine so busy that their events come all at once.
	for i := range 100 {
		dir := filepath.Join(root, "made"+strconv.Itoa(i))
		if err := os.MkdirAll(filepath.Join(dir, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
		o.scan() // It sees each of them.
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	o.calm()

	if err := os.MkdirAll(filepath.Join(root, "0", "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	worn := func() bool { return strings.HasPrefix(o.w.State().Reason, "too many directories came and went") }
	for i := 0; i < 100 && !worn(); i++ {
		if err := os.Rename(filepath.Join(root, strconv.Itoa(i)), filepath.Join(root, strconv.Itoa(i+1))); err != nil {
			t.Fatal(err)
		}
		o.follow()
		o.scan()
	}
	if !worn() {
		t.Fatalf("%+v with %d names", o.w.State(), len(o.w.names.known))
	}
	write(t, filepath.Join(root, "f"), "x")
	o.converge()
	if !o.w.State().Degraded || o.w.held().has(o.w.self) {
		t.Errorf("%+v, and the root is watched", o.w.State())
	}
}

// TestNamesOfFleetingDirectories count where there are many different ones.
func TestNamesOfFleetingDirectories(t *testing.T) {
	n := newNames(100)
	now := time.Now()
	live := func(name string, life time.Duration) {
		hash := n.hash(name)
		n.make(hash, now)
		now = now.Add(life)
		n.forget(hash, now)
	}
	for i := range 10_000 {
		live("lock", 0)
		live(strconv.Itoa(i), fleeting)
	}
	if len(n.known) > 1 || len(n.made) > mostMade || len(n.removed) > n.most {
		t.Errorf("%d names, %d made, %d removed", len(n.known), len(n.made), len(n.removed))
	}
	for i := range 100 * fleetingShare * 2 {
		live(strconv.Itoa(i), fleeting/2)
	}
	if !n.tooMany() || len(n.known) > n.most+1 {
		t.Errorf("%d names", len(n.known))
	}
}
