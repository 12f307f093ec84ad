package copies

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"liken.sh/csicommon/mount"
)

// C02: whatever is gone already is success, and the copy stays.
func TestUnpublishSucceedsWhenThingsAreGone(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("kept", "9"))
	f.must(f.store.Unpublish(t.Context(), "h1", filepath.Join(f.kubelet, "pods", "0", "volumes", "kubernetes.io~csi", "pv-x", "mount")))

	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
	f.must(f.unpublish("h1", "1"))

	f.must(f.publish("h1", "1"))
	f.command("umount", f.target("1"))
	f.must(f.unpublish("h1", "1"))
	if f.exists(f.target("1")) {
		t.Error("the target that somebody else unmounted is left")
	}

	f.must(f.publish("h1", "1"))
	f.command("umount", f.target("1"))
	f.must(os.Remove(f.target("1")))
	f.must(f.unpublish("h1", "1"))

	f.must(f.publish("h1", "1"))
	f.command("umount", f.target("1")) // the reboot of (e)
	f.restart()
	f.must(f.unpublish("h1", "1"))

	f.must(f.unpublish("never-heard-of", "1"))
	f.must(f.unpublish("../not a handle\n", "1"))

	f.must(f.publish("h1", "1"))
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if err := f.unpublish("h1", "1"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()

	all, err := f.store.List()
	if err != nil || len(all) != 2 {
		t.Errorf("copies %q, %v; want h1 and kept", all, err)
	}
	if f.exists(f.target("1")) || f.store.hasHold("h1") {
		t.Error("a target or a hold is left")
	}
}

func TestUnpublishTakesAllStackedMounts(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.command("mount", "--bind", f.target("1"), f.target("1"))
	f.command("mount", "-t", "tmpfs", "over", f.target("1"))
	f.must(f.unpublish("h1", "1"))
	if n := f.mountsAt(f.target("1")); n != 0 {
		t.Errorf("%d mounts left", n)
	}
}

func TestUnpublishOfABadHandleUnmountsOurTarget(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("Not_A_Handle", "1"))
	if n := f.mountsAt(f.target("1")); n != 0 {
		t.Errorf("%d mounts left", n)
	}
}

func TestUnpublishLeavesWhatIsNotOurs(t *testing.T) {
	f := newFixture(t)
	foreign := filepath.Join(t.TempDir(), "data")
	f.must(os.Mkdir(foreign, 0o755))
	f.must(f.store.Unpublish(t.Context(), "h1", foreign))
	if !f.exists(foreign) {
		t.Error("an empty directory that was no target is gone")
	}
	f.command("mount", "-t", "tmpfs", "mine", foreign)
	t.Cleanup(func() { f.command("umount", foreign) })
	f.must(f.store.Unpublish(t.Context(), "h1", foreign))
	if n := f.mountsAt(foreign); n != 1 {
		t.Errorf("%d mounts, want the foreign one", n)
	}
}

// A conformance tool has its targets anywhere; what is mounted there is ours.
func TestUnpublishOutsideTheKubeletDirectory(t *testing.T) {
	f := newFixture(t)
	f.store.config.KubeletDir = "/elsewhere"
	target := filepath.Join(f.kubelet, "target")
	for range 2 {
		f.must(f.publish("h1", "1", func(p *Publication) { p.Target = target }))
		f.must(f.store.Unpublish(t.Context(), "h1", target))
		if f.exists(target) {
			t.Error("the target is left")
		}
	}
}

func TestUnpublishOfABusyMountIsAnError(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	user := exec.Command("sleep", "60")
	user.Dir = f.target("1")
	f.must(user.Start())
	err := f.unpublish("h1", "1")
	f.must(user.Process.Kill())
	_ = user.Wait()
	if !errors.Is(err, mount.ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
	if n := f.mountsAt(f.target("1")); n != 1 || !f.store.hasHold("h1") {
		t.Errorf("%d mounts, hold %t; want both kept", n, f.store.hasHold("h1"))
	}
	f.must(f.unpublish("h1", "1"))
}

func TestUnpublishNeverDeletesFiles(t *testing.T) {
	f := newFixture(t)
	f.must(os.Mkdir(f.target("1"), 0o750))
	stray := filepath.Join(f.target("1"), "written while nothing was mounted")
	f.must(os.WriteFile(stray, nil, 0o600))
	if err := f.unpublish("h1", "1"); !errors.Is(err, mount.ErrNotEmpty) {
		t.Errorf("%v, want ErrNotEmpty", err)
	}
	if !f.exists(stray) {
		t.Error("the stray file is gone")
	}
}
