package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/rig"
)

// C02: whatever is gone already, unpublish succeeds and leaves the copy.
func TestUnpublishWhatIsGone(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	target := n.Target("h1", 1)
	unmount := func() {
		if err := unix.Unmount(target, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name   string
		copies []string
		do     func()
	}{
		{"a never published, no parent", nil, func() {}},
		{"b unpublished already", []string{"h1"}, func() { n.mustPublish("h1", 1); n.mustUnpublish("h1", 1) }},
		{"c unmounted by hand", []string{"h1"}, func() { n.mustPublish("h1", 1); unmount() }},
		{"d unmounted and removed by hand", []string{"h1"}, func() {
			n.mustPublish("h1", 1)
			unmount()
			if err := unix.Rmdir(target); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		row.do()
		if err := n.Unpublish(volume("h1"), rig.Pod(1)); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if exists(target) {
			t.Errorf("%s: the target is still there", row.name)
		}
		n.wantCopies(row.copies...)
	}
}

// C02 (e).
func TestUnpublishAfterReboot(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.mustPublish("h1", 1)
	n.Plugin.Kill()
	if err := unix.Unmount(n.Target("h1", 1), 0); err != nil {
		t.Fatal(err)
	}
	n.API.DeleteVolume("h1")
	n.Start()
	n.mustUnpublish("h1", 1)
	if exists(n.Target("h1", 1)) {
		t.Error("the target is still there")
	}
}

// C02 (f), and handles that no volume can have.
func TestUnpublishUnknownHandle(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start()
	for _, handle := range []string{"unknown", "../x", "A b\n"} {
		target := n.Target("pv-x", 1)
		if err := os.MkdirAll(target, 0o750); err != nil {
			t.Fatal(err)
		}
		rig.WantCode(t, n.unpublishAt(handle, target), codes.OK)
		if exists(target) {
			t.Errorf("%q: the target is still there", handle)
		}
	}
	rig.WantCode(t, n.unpublishAt("", n.Target("pv-x", 1)), codes.InvalidArgument)
	rig.WantCode(t, n.unpublishAt("h1", ""), codes.InvalidArgument)
	n.wantCopies()
}

// C02 (g).
func TestTwoUnpublishesAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.mustPublish("h1", 1)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := n.Unpublish(volume("h1"), rig.Pod(1)); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	n.WantMounts(n.Target("h1", 1), 0)
	n.wantCopies("h1")
}

// A directory somebody put below the target, before or behind the mount, is
// never deleted: only rmdir is used.
func TestUnpublishDeletesNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	target := n.Target("h1", 1)
	if err := os.MkdirAll(target, 0o750); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(target, "behind"), "x")
	n.mustPublish("h1", 1)
	writeFile(t, filepath.Join(target, "inside"), "x")
	if err := n.Unpublish(volume("h1"), rig.Pod(1)); err == nil {
		t.Error("unpublish says OK, and the target is not empty")
	}
	n.WantMounts(target, 0)
	for _, path := range []string{filepath.Join(target, "behind"), filepath.Join(n.copyDir("h1"), "inside")} {
		if !exists(path) {
			t.Errorf("%s was deleted", path)
		}
	}
}

// C04.
func TestCopyRemovedUnderItsMount(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.mustPublish("h1", 1)
	if err := os.RemoveAll(n.copyDir("h1")); err != nil {
		t.Fatal(err)
	}
	if mounts := rig.MountsAt(t, os.Getpid(), n.Target("h1", 1)); len(mounts) != 1 || filepath.Base(mounts[0].Root) != "deleted" {
		t.Fatalf("mounts at the target: %+v, want one of a deleted directory", mounts)
	}
	rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(2)), codes.FailedPrecondition)
	n.mustUnpublish("h1", 1)
	n.WantMounts(n.Target("h1", 1), 0)
	n.mustPublish("h1", 2)
	wantMode(t, n.copyDir("h1"), os.ModeDir|0o777)
	if left := names(t, n.Target("h1", 2)); left != nil {
		t.Errorf("the new copy holds %q", left)
	}
}
