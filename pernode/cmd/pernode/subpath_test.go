package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/manyfiles"
)

// A pod has part of some volume by subPath, and moves that so deep in the volume that no
// path leads to it any more. The kubelet's mount of it is on the node, and is no reason to
// refuse anybody a copy, nor to start. It is not run beside others, since what reads the
// mounts for a test cannot read this one.
func TestASubPathThatWasMovedTooDeep(t *testing.T) {
	n := newNode(t, "h1", "h2")
	n.Start()
	n.mustPublish("h1", 1)
	pod := filepath.Join(n.KubeletDir, "pods", "theirs")
	volume, subPath := filepath.Join(pod, "volumes", "kubernetes.io~empty-dir", "v"), filepath.Join(pod, "volume-subpaths", "v", "c", "0")
	for _, dir := range []string{filepath.Join(volume, "part"), filepath.Join(volume, "deep"), subPath} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	bottom := manyfiles.Deep(t, filepath.Join(volume, "deep"))
	if err := unix.Mount(filepath.Join(volume, "part"), subPath, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	take := func() { _ = unix.Unmount(subPath, unix.MNT_DETACH) }
	t.Cleanup(take)
	if err := unix.Renameat(unix.AT_FDCWD, filepath.Join(volume, "part"), int(bottom.Fd()), "part"); err != nil {
		t.Fatal(err)
	}
	n.mustPublish("h2", 2)
	n.Plugin.Kill()
	n.Start()
	n.mustPublish("h1", 1)
	n.mustUnpublish("h1", 1)
	n.mustUnpublish("h2", 2)
	n.mustPublish("h1", 3)
	take() // What wants the mounts here reads them line by line.
	n.WantMounts(n.Target("h1", 3), 1)
	n.WantMounts(n.Target("h2", 2), 0)
	n.mustUnpublish("h1", 3)
}
