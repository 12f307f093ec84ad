package nodetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
)

// ofEachKind is a volume of each kind, for the i-th pods from 1 on.
func (n *node) ofEachKind() []kubelet.Volume {
	n.T.Helper()
	n.remote.Grow("main", "a", "1")
	inline := kubelet.Inline(rig.Pod(1), "config", map[string]string{"url": "file://" + n.remote.Dir})
	n.API.PutVolume(apiserver.Volume("read", driver.Name, "read"))
	return []kubelet.Volume{inline, n.volume("read"), n.written("written", "")}
}

// C01: one mount, however often the kubelet repeats itself and the plugin is killed.
func TestOneMountWhateverIsRepeated(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	volumes := n.ofEachKind()
	before := len(mounts(t, n.KubeletDir))
	n.Start()
	publish := func(times int) {
		for i, v := range volumes {
			for range times {
				n.WantMounts(n.MustPublish(v, i+1), 1)
			}
		}
	}
	publish(5)
	n.Plugin.Kill()
	n.Start()
	publish(3)
	for i, v := range volumes {
		n.MustUnpublish(v, i+1)
		n.WantMounts(n.Target(v.PV, i+1), 0)
	}
	if after := mounts(t, n.KubeletDir); len(after) != before {
		t.Errorf("left are %v", after)
	}
}

// C02: whatever is gone already, an unpublish succeeds, also two of them at a time.
func TestUnpublishOfWhatIsGone(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	volumes := n.ofEachKind()
	n.Start()
	for i, v := range volumes {
		rig.WantCode(t, n.Unpublish(v, rig.Pod(i+1)), codes.OK) // Never published, no parent.
		for what, undo := range map[string]func(target string) error{
			"unmounted":             func(target string) error { return unix.Unmount(target, 0) },
			"unmounted and removed": unmountAndRemove,
			"rebooted": func(target string) error {
				n.Plugin.Kill()
				err := unix.Unmount(target, 0)
				n.Start()
				return err
			},
			"there": func(string) error { return nil },
		} {
			target := n.MustPublish(v, i+1)
			if err := undo(target); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if err := n.Unpublish(v, rig.Pod(i+1)); err != nil {
						t.Errorf("%s of %s: %v", what, v.PV, err)
					}
				})
			}
			both.Wait()
			if exists(target) {
				t.Errorf("%s of %s: the target is left", what, v.PV)
			}
		}
		unknown := v
		unknown.Handle, unknown.PV = "unknown", "unknown"
		rig.WantCode(t, n.Unpublish(unknown, rig.Pod(i+1)), codes.OK)
	}
	n.API.DeleteVolume("written")
	rig.WantCode(t, n.Unpublish(volumes[2], rig.Pod(3)), codes.OK)
	if tree := filepath.Join(n.Store, "volumes", "written", "tree"); !exists(tree) {
		t.Error("an unpublish removed a tree")
	}
}

func unmountAndRemove(target string) error {
	if err := unix.Unmount(target, 0); err != nil {
		return err
	}
	return unix.Rmdir(target)
}

// C12: paths as kubelets have them, which mountinfo shows as \040 and \134.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.KubeletDir = filepath.Join(n.KubeletDir, `k l\m`)
	if err := os.Mkdir(n.KubeletDir, 0o750); err != nil {
		t.Fatal(err)
	}
	n.Start()
	v := n.volume("v")
	deep := filepath.Join(n.KubeletDir, strings.Repeat("r", 200), "pods", rig.Pod(2).UID, "volumes", "kubernetes.io~csi", strings.Repeat("p", 253), "mount")
	if err := os.MkdirAll(filepath.Dir(deep), 0o750); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n.WantMounts(n.MustPublish(v, 1), 1)
		rig.WantCode(t, n.publishAt(v, deep), codes.OK)
		n.WantMounts(deep, 1)
	}
	rig.WantCode(t, n.unpublishAt(v, deep), codes.OK)
	n.WantMounts(deep, 0)
	n.MustUnpublish(v, 1)
	n.WantMounts(n.Target("v", 1), 0)
}

// publishAt publishes a read-only volume at a target that the stand-in kubelet would not
// choose.
func (n *node) publishAt(v kubelet.Volume, target string) error {
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	_, err := n.Kubelet.Node().NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: v.Handle, TargetPath: target, StagingTargetPath: n.Kubelet.Staging(v.Handle), Readonly: true, VolumeContext: v.Attributes,
		VolumeCapability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		},
	})
	return err
}

func (n *node) unpublishAt(v kubelet.Volume, target string) error {
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	_, err := n.Kubelet.Node().NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.Handle, TargetPath: target})
	return err
}

// C17 (a) and (b): a dead FUSE mount at the target is taken away, and never taken for the
// volume.
func TestADeadMountAtTheTarget(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.Start()
	v := n.volume("v")
	target := n.MustPublish(v, 1)
	n.MustUnpublish(v, 1)
	rig.MountDead(t, target)
	n.MustUnpublish(v, 1)
	n.WantMounts(target, 0)
	if exists(target) {
		t.Error("the target is left")
	}
	rig.MountDead(t, target)
	if err := n.Publish(v, rig.Pod(1)); err == nil || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("a publish onto a dead mount: %v", err)
	}
	n.MustUnpublish(v, 1)
	shows(t, n.MustPublish(v, 1), "a", "1")
}

// C17 (c): a repeated publish does not unmount, not even for a moment.
func TestAReaderNoticesNoRepeatedPublish(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.Start()
	v := n.volume("v")
	file := filepath.Join(n.MustPublish(v, 1), "a")
	stop, reads, failed := make(chan struct{}), 0, 0
	var reader sync.WaitGroup
	reader.Go(func() {
		for ; ; reads++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := os.ReadFile(file); err != nil {
				failed++
			}
		}
	})
	for range 50 {
		n.MustPublish(v, 1)
	}
	close(stop)
	reader.Wait()
	if reads == 0 || failed > 0 {
		t.Errorf("%d of %d reads failed", failed, reads)
	}
}

// What a container mounts by subPath was made of the directory as it was when the container
// was started, and follows it all the same.
func TestSubPathsFollow(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.remote.Grow("main", "d/e/f", "0")
	n.Start()
	target := n.MustPublish(n.volume("v"), 1)
	container := mountns.SharedDir(t)
	if err := unix.Mount(filepath.Join(target, "d"), container, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(container, unix.MNT_DETACH) })
	for i := range 3 {
		content := fmt.Sprint(i + 1)
		n.remote.Grow("main", "d/e/f", content)
		shows(t, target, "d/e/f", content)
		shows(t, container, "e/f", content)
		n.remote.Grow("main", "d/new", content)
		shows(t, container, "new", content)
	}
}
