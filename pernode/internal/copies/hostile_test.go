package copies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/target"
)

// What is in the trash is deleted and what copies holds is one day, so no link
// and nothing of somebody else's may be taken for either.
func TestOpenTakesNothingForAStoreThatIsNone(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(t *testing.T, dir, victim string) error
		words string
	}{
		{"trash is a link, format there", func(_ *testing.T, dir, victim string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "format"), []byte("1\n"), 0o600), os.Symlink(victim, filepath.Join(dir, "trash")))
		}, "link"},
		{"holds is a link, format there", func(_ *testing.T, dir, victim string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "format"), []byte("1\n"), 0o600), os.Symlink(victim, filepath.Join(dir, "holds")))
		}, "link"},
		{"copies is a link", func(_ *testing.T, dir, victim string) error {
			return os.Symlink(victim, filepath.Join(dir, "copies"))
		}, "link"},
		{"a trash of somebody else", func(_ *testing.T, dir, _ string) error {
			return os.MkdirAll(filepath.Join(dir, "trash", "photos"), 0o755)
		}, `"photos"`},
		{"copies of somebody else", func(_ *testing.T, dir, _ string) error {
			return os.MkdirAll(filepath.Join(dir, "copies", "of-mine"), 0o755)
		}, `"of-mine"`},
		{"a hidden file of somebody else", func(_ *testing.T, dir, _ string) error {
			return os.Mkdir(filepath.Join(dir, ".git"), 0o755)
		}, `".git"`},
		{"format is a FIFO", func(_ *testing.T, dir, _ string) error {
			return syscall.Mkfifo(filepath.Join(dir, "format"), 0o600)
		}, "not a regular file"},
		{"lock is a link", func(_ *testing.T, dir, victim string) error {
			return os.Symlink(filepath.Join(victim, "kept"), filepath.Join(dir, "lock"))
		}, "not a regular file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, victim := t.TempDir(), t.TempDir()
			kept := filepath.Join(victim, "kept")
			if err := errors.Join(os.WriteFile(kept, []byte("x"), 0o600), row.spoil(t, dir, victim)); err != nil {
				t.Fatal(err)
			}
			if err := tryOpen(t, dir, false); !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), row.words) {
				t.Errorf("Open = %v, want ErrStore with %q", err, row.words)
			}
			if data, err := os.ReadFile(kept); err != nil || string(data) != "x" {
				t.Errorf("what the link led to: %q, %v", data, err)
			}
		})
	}
}

func TestAMadeDirectoryLayoutIsTaken(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"copies", "holds", "trash", "lost+found"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := tryOpen(t, dir, false); err != nil {
		t.Errorf("Open = %v", err)
	}
}

func TestALostClusterIsNotANewStore(t *testing.T) {
	f := newFixture(t)
	f.must(f.store.SetCluster("uid-1"))
	path := filepath.Join(f.dir, "cluster")
	for _, lose := range []func() error{
		func() error { return os.Truncate(path, 0) },
		func() error { return os.Remove(path) },
	} {
		f.must(lose())
		f.restart()
		if uid, err := f.store.Cluster(); !errors.Is(err, ErrClusterLost) {
			t.Errorf("Cluster = %q, %v, want ErrClusterLost", uid, err)
		}
	}
}

// giveOwnDisk opens the store anew, on a file system of its own.
func (f *fixture) giveOwnDisk() {
	f.t.Helper()
	f.must(f.store.Close())
	f.command("mount", "-t", "tmpfs", "disk", f.dir)
	f.t.Cleanup(func() { _ = f.store.Close(); f.command("umount", "-l", f.dir) })
	f.open()
}

// A disk with errors goes read-only under the running pods: they must still be
// taken off it, by this process and by the next.
func TestAReadOnlyStoreLetsGo(t *testing.T) {
	f := newFixture(t)
	f.giveOwnDisk()
	f.must(f.publish("h1", "1"))
	f.must(f.publish("h2", "2"))
	// As the kernel does it after an error: the file system, not its mount.
	f.command("mount", "-o", "remount,ro", f.dir)
	f.command("mount", "-o", "remount,bind,rw", f.dir)
	f.must(f.store.Usable(t.Context()))
	if err := f.store.Writable(t.Context()); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Writable = %v, want EROFS", err)
	}
	f.must(f.unpublish("h1", "1"))
	f.restart()
	f.must(f.unpublish("h2", "2"))
	f.must(f.publish("h1", "3")) // an existing copy can still be read
	if err := f.publish("h1", "4"); !errors.Is(err, ErrHeld) {
		t.Errorf("a second pod: %v, want ErrHeld", err)
	}
	if err := f.publish("h3", "5"); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a new copy: %v, want EROFS", err)
	}
	f.must(f.unpublish("h1", "3"))
	f.must(f.publish("h1", "6")) // over a hold that still names the first pod
	f.command("mount", "-o", "remount,rw", f.dir)
	f.must(f.store.Writable(t.Context()))
	f.must(f.publish("h1", "6"))
	if err := f.publish("h1", "7"); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "ns/pod-6") {
		t.Errorf("%v, want ErrHeld naming ns/pod-6", err)
	}
	f.must(f.unpublish("h1", "6"))
	if f.store.hasHold("h1") {
		t.Error("a hold outlives its mount")
	}
}

// A store that an administrator remounts, or that is bound into the plugin's container
// while its disk is read-only: the mount is so too, and not only the file system.
func TestAStoreThatIsMountedReadOnly(t *testing.T) {
	f := newFixture(t)
	f.giveOwnDisk()
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
	f.command("mount", "-o", "remount,ro", f.dir)
	f.restart()
	for range 2 { // The kubelet repeats it.
		f.must(f.publish("h1", "1"))
	}
	file := filepath.Join(f.target("1"), "file")
	if err := os.WriteFile(file, nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write: %v, want EROFS", err)
	}
	f.command("mount", "-o", "remount,rw", f.dir)
	f.must(f.publish("h1", "1"))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Errorf("the disk can be written again, and the pod cannot: %v", err)
	}
	f.must(f.unpublish("h1", "1"))
}

// A disk that is mounted late, over the kubelet's directory: the pod's mount is there, and
// nothing leads to it.
func TestAMountThatIsHiddenIsNotPublished(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	pods := filepath.Join(f.kubelet, "pods")
	f.command("mount", "-t", "tmpfs", "over", pods)
	first := f.publish("h1", "1")
	if !errors.Is(first, target.ErrOccupied) {
		t.Errorf("publish again = %v, want ErrOccupied", first)
	}
	if err := f.publish("h1", "1"); err == nil || err.Error() != first.Error() {
		t.Errorf("%v, before: %v", err, first)
	}
	if err := f.publish("h1", "2"); !errors.Is(err, ErrHeld) {
		t.Errorf("another pod: %v, want ErrHeld", err)
	}
	f.command("umount", pods)
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
}

func TestSomethingOverTheMountIsNotThePodsVolume(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.command("mount", "-t", "tmpfs", "over", f.target("1"))
	if err := f.publish("h1", "1"); !errors.Is(err, target.ErrOccupied) {
		t.Errorf("publish again = %v, want ErrOccupied", err)
	}
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "1"))
}

func TestAPodsDirectoryThatIsALink(t *testing.T) {
	f := newFixture(t)
	disk := mountns.SharedDir(t)
	f.must(os.Symlink(disk, filepath.Join(f.kubelet, "pods")))
	target := f.target("1")
	f.must(os.Mkdir(target, 0o750))
	f.command("mount", "-t", "tmpfs", "dead", target)
	f.must(f.unpublish("h1", "1"))
	if f.exists(target) {
		t.Error("the target is left")
	}
}

func TestATargetInsideTheStoreIsRefused(t *testing.T) {
	f := newFixture(t)
	f.command("mount", "--bind", f.dir, f.dir)
	f.command("mount", "--make-shared", f.dir)
	t.Cleanup(func() { _ = f.store.Close(); f.command("umount", "-l", f.dir) })
	f.restart()
	for _, name := range []string{"copies/h2", "copies/h1", "holds", "new"} {
		at := filepath.Join(f.dir, name)
		if err := f.publish("h1", "1", func(p *Publication) { p.Target = at }); !errors.Is(err, target.ErrTarget) {
			t.Errorf("%s: %v, want ErrTarget", name, err)
		}
		f.must(f.store.Unpublish(t.Context(), "h1", at))
	}
	if !f.exists(filepath.Join(f.dir, "holds")) {
		t.Error("unpublish removed a part of the store")
	}
}

func TestBrokenHoldsStopNobody(t *testing.T) {
	f := newFixture(t)
	f.must(os.MkdirAll(filepath.Join(f.holdPath("h1"), "x"), 0o700))
	f.must(f.publish("h1", "1"))
	f.must(syscall.Mkfifo(f.holdPath("h2"), 0o600))
	f.must(f.publish("h2", "2"))
	if _, readable := f.store.Hold("h2"); !readable {
		t.Error("the FIFO was not replaced")
	}
	f.must(os.WriteFile(f.holdPath("h2"), make([]byte, longestFile+1), 0o600))
	f.must(f.publish("h2", "2")) // repairs it
	if err := f.publish("h2", "3"); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "ns/pod-2") {
		t.Errorf("%v, want the repaired hold's name", err)
	}
	f.must(os.WriteFile(f.holdPath("h2"), []byte("{"), 0o600))
	f.must(f.unpublish("h2", "2"))
	if f.store.hasHold("h2") {
		t.Error("a broken hold outlives its mount")
	}
	f.must(os.RemoveAll(filepath.Join(f.dir, holdsDir)))
	f.must(f.publish("h3", "4"))
	if err := f.store.Usable(t.Context()); !errors.Is(err, ErrStore) {
		t.Errorf("Usable without holds = %v, want ErrStore", err)
	}
}

func TestARefusalIsTheSameWhateverTheOrderOfTheMounts(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(os.Remove(f.holdPath("h1")))
	for i := range 6 {
		by := filepath.Join(t.TempDir(), fmt.Sprint(i))
		f.must(os.Mkdir(by, 0o700))
		f.command("mount", "--bind", f.copyPath("h1"), by)
		t.Cleanup(func() { f.command("umount", by) })
	}
	first := f.publish("h1", "2")
	for range 20 {
		if err := f.publish("h1", "2"); err == nil || err.Error() != first.Error() {
			t.Fatalf("%v, before: %v", err, first)
		}
	}
}

func TestNoNewCopyUnderADiskMountedOverTheStore(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.command("mount", "-t", "tmpfs", "over", f.dir)
	if err := f.publish("h2", "2"); !errors.Is(err, ErrStore) {
		t.Errorf("a new copy: %v, want ErrStore", err)
	}
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
	f.command("umount", f.dir)
	f.must(f.publish("h2", "2"))
}

func TestATargetThatWouldHideTheStoreIsRefused(t *testing.T) {
	f := newFixture(t)
	above := mountns.SharedDir(t)
	f.must(f.store.Close())
	f.dir = filepath.Join(above, "liken", "store")
	f.open()
	for _, at := range []string{filepath.Dir(f.dir), f.dir, f.kubelet} {
		if err := f.publish("h1", "1", func(p *Publication) { p.Target = at }); !errors.Is(err, target.ErrTarget) {
			t.Errorf("%s: %v, want ErrTarget", at, err)
		}
	}
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
}

func TestUnpublishOfPathsThatLeadNowhere(t *testing.T) {
	f := newFixture(t)
	file, loop := filepath.Join(f.kubelet, "file"), filepath.Join(f.kubelet, "loop")
	f.must(os.WriteFile(file, nil, 0o600))
	f.must(os.Symlink(loop, loop))
	for _, parent := range []string{file, loop, filepath.Join(f.kubelet, strings.Repeat("n", 300)), filepath.Join(f.kubelet, "gone")} {
		f.must(f.store.Unpublish(t.Context(), "h1", filepath.Join(parent, "mount")))
	}
}

// The mount table of a removal is read without asking the API server, and a
// publish is not kept waiting by a removal that is called off.
func TestRemoveAsksWithTheLockHeld(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
	f.must(f.store.Remove(t.Context(), "h1", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := f.store.handles.Lock(ctx, "h1"); err == nil {
			t.Error("the volume is not locked while its removal is confirmed")
		}
		return nil
	}))
}
