package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// C01. Not parallel: it counts every mount of the namespace.
func TestPublishAgain(t *testing.T) {
	n := newNode(t, "h1")
	n.Start()
	lines := mountLines(t)
	target := n.Target("h1", 1)
	for range 5 {
		n.mustPublish("h1", 1)
		n.WantMounts(target, 1)
	}
	n.Plugin.Kill()
	n.Start()
	for range 3 {
		n.mustPublish("h1", 1)
		n.WantMounts(target, 1)
	}
	if got := mountLines(t); got != lines+1 {
		t.Errorf("%d mounts after 8 publishes, want one more than the %d before", got, lines)
	}
	n.mustUnpublish("h1", 1)
	n.WantMounts(target, 0)
	if got := mountLines(t); got != lines {
		t.Errorf("%d mounts after the unpublish, want the %d of the start", got, lines)
	}
}

func mountLines(t *testing.T) int {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(table), "\n")
}

// C11.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.mustPublish("h1", 1)
	target := n.Target("h1", 1)
	writeFile(t, filepath.Join(target, "old"), "x")
	n.mustUnpublish("h1", 1)

	rig.WantCode(t, n.Publish(readOnly(volume("h1")), rig.Pod(1)), codes.OK)
	for what, err := range map[string]error{
		"touch":    os.WriteFile(filepath.Join(target, "x"), nil, 0o600),
		"chmod":    os.Chmod(filepath.Join(target, "old"), 0o600),
		"link":     os.Link(filepath.Join(target, "old"), filepath.Join(target, "new")),
		"setxattr": unix.Setxattr(filepath.Join(target, "old"), "user.a", []byte("1"), 0),
		"rm":       os.Remove(filepath.Join(target, "old")),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s on a read-only volume: %v, want %v", what, err, syscall.EROFS)
		}
	}
	writeFile(t, filepath.Join(n.copyDir("h1"), "y"), "only the mount is read-only, not the store")
	mounts := rig.MountsAt(t, os.Getpid(), target)
	if len(mounts) != 1 || !strings.HasPrefix(mounts[0].Options, "ro,") || !strings.HasPrefix(mounts[0].VFSOptions, "rw") {
		t.Errorf("mounts at the target: %+v, want one that is ro of a file system that is rw", mounts)
	}
	n.mustUnpublish("h1", 1)
	n.mustPublish("h1", 1)
	writeFile(t, filepath.Join(target, "x"), "")
	for _, option := range []string{"nosuid", "nodev"} {
		if got := rig.MountsAt(t, os.Getpid(), target)[0].Options; !strings.Contains(got, option) {
			t.Errorf("mount options %q lack %s", got, option)
		}
	}
}

// C12: one directory, spelled in many ways.
func TestSpellingsOfATarget(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	link := filepath.Join(t.TempDir(), "kl")
	if err := os.Symlink(n.KubeletDir, link); err != nil {
		t.Fatal(err)
	}
	real := n.Target("h1", 1)
	linked := strings.Replace(real, n.KubeletDir, link, 1)
	if err := os.MkdirAll(filepath.Dir(real), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{linked, real, strings.Replace(real, "/volumes/", "//volumes/./", 1), real + "/"} {
		rig.WantCode(t, n.publishAt("h1", target), codes.OK)
		n.WantMounts(real, 1)
	}
	err := n.Publish(volume("h1"), rig.Pod(2))
	rig.WantCode(t, err, codes.FailedPrecondition)
	wantWords(t, err.Error(), "pod default/pod-1") // the hold is found by its one spelling
	rig.WantCode(t, n.unpublishAt("h1", linked), codes.OK)
	n.WantMounts(real, 0)
	if exists(real) {
		t.Error("the target is still there after the unpublish")
	}
}

// C12: paths as real kubelets have them.
func TestLongTarget(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	deep := filepath.Join(n.KubeletDir, strings.Repeat("r", 200))
	target := filepath.Join(deep, "pods", rig.Pod(1).UID, "volumes", "kubernetes.io~csi", strings.Repeat("p", 253), "mount")
	if len(target) < 550 {
		t.Fatalf("the target has only %d bytes", len(target))
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rig.WantCode(t, n.publishAt("h1", target), codes.OK)
		n.WantMounts(target, 1)
	}
	rig.WantCode(t, n.unpublishAt("h1", target), codes.OK)
	n.WantMounts(target, 0)
}

// C12: mountinfo shows these as \040 and \134.
func TestKubeletDirWithSpaceAndBackslash(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.KubeletDir = filepath.Join(n.KubeletDir, `k l\m`)
	if err := os.Mkdir(n.KubeletDir, 0o750); err != nil {
		t.Fatal(err)
	}
	n.Start()
	for range 2 {
		n.mustPublish("h1", 1)
		n.WantMounts(n.Target("h1", 1), 1)
	}
	n.mustUnpublish("h1", 1)
	n.WantMounts(n.Target("h1", 1), 0)
}

// C14.
func TestModeOfACopy(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.StartUnregistered(withUmask("077", n.Command()))
	n.Register()
	n.mustPublish("h1", 1)
	wantMode(t, n.copyDir("h1"), os.ModeDir|0o777)
	wantMode(t, n.Target("h1", 1), os.ModeDir|0o777)
	writeFile(t, filepath.Join(n.Target("h1", 1), "f"), "kept")
	if err := os.Chmod(n.Target("h1", 1), os.ModeSetgid|0o770); err != nil {
		t.Fatal(err)
	}
	n.mustUnpublish("h1", 1)
	n.mustPublish("h1", 1)
	wantMode(t, n.Target("h1", 1), os.ModeDir|os.ModeSetgid|0o770)
	if data, err := os.ReadFile(filepath.Join(n.Target("h1", 1), "f")); string(data) != "kept" {
		t.Errorf("the copy's file holds %q: %v", data, err)
	}
	wantMode(t, n.Store, os.ModeDir|0o700)
}

func wantMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != want {
		t.Errorf("mode of %s is %v, want %v", path, info.Mode(), want)
	}
}

// publishAt publishes for pod 1 at a target of another spelling or place than
// the stand-in kubelet would choose.
func (n *node) publishAt(handle, target string) error {
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	_, err := n.Kubelet.Node().NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: handle, TargetPath: target,
		VolumeCapability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		},
		VolumeContext: map[string]string{
			"csi.storage.k8s.io/pod.name": rig.Pod(1).Name, "csi.storage.k8s.io/pod.namespace": rig.Pod(1).Namespace,
			"csi.storage.k8s.io/pod.uid": rig.Pod(1).UID,
		},
	})
	return err
}

func (n *node) unpublishAt(handle, target string) error {
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	_, err := n.Kubelet.Node().NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: target})
	return err
}
