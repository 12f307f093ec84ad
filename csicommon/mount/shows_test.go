package mount

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestShows(t *testing.T) {
	n := newNative(t)
	target, volume := n.target(t, "t"), n.volume(t, "v")
	mkdir(t, filepath.Join(volume, "inner"))
	n.volume(t, "other")
	if err := os.Symlink("v", filepath.Join(n.store, "link")); err != nil {
		t.Fatal(err)
	}
	store := handle(t, n.store)
	shows := func(point, name string) bool {
		t.Helper()
		m, shown := n.Shows(point, store, name)
		if shown && m.Point != point {
			t.Errorf("the mount shown at %q is at %q", point, m.Point)
		}
		return shown
	}
	if shows(target, "v") {
		t.Error("shown before the bind")
	}
	n.mustBind(t, volume, target, Options{ReadOnly: true})
	if m, shown := n.Shows(target, store, "v"); !shown || !m.ReadOnly {
		t.Errorf("after a read-only bind: %+v, shown %t", m, shown)
	}
	for what, shown := range map[string]bool{
		"another volume":                    shows(target, "other"),
		"a missing one":                     shows(target, "missing"),
		"a link to the volume":              shows(target, "link"),
		"a directory inside":                shows(filepath.Join(target, "inner"), "v/inner"),
		"the volume itself, not mounted":    shows(volume, "v"),
		"a volume made again with its name": madeAgain(t, volume, func() bool { return shows(target, "v") }),
		"a missing target":                  shows(filepath.Join(n.kubelet, "missing"), "v"),
		"the target once it is covered":     covered(t, n, target, func() bool { return shows(target, "v") }),
	} {
		if shown {
			t.Errorf("%s counts as shown", what)
		}
	}
}

// madeAgain asks while another directory has the volume's name.
func madeAgain(t *testing.T, volume string, ask func() bool) bool {
	t.Helper()
	if err := os.Rename(volume, volume+"-away"); err != nil {
		t.Fatal(err)
	}
	mkdir(t, volume)
	answer := ask()
	if err := os.Remove(volume); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(volume+"-away", volume); err != nil {
		t.Fatal(err)
	}
	return answer
}

// covered asks while something else is mounted on the target.
func covered(t *testing.T, n *node, target string, ask func() bool) bool {
	t.Helper()
	mustMount(t, n.volume(t, "cover"), target, "", unix.MS_BIND)
	return ask()
}
