package nodetest

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
)

// written is a claim to write to, of the node's repository, with the class that the cluster
// has by that name; empty: with none.
func (n *node) written(handle, class string) kubelet.Volume {
	pv := apiserver.Volume(handle, driver.Name, handle)
	if class != "" {
		pv.Spec.VolumeAttributesClassName = &class
	}
	n.API.PutVolume(pv)
	return kubelet.Volume{
		PV: handle, Handle: handle, AccessMode: corev1.ReadWriteOncePod,
		Attributes: map[string]string{"url": "file://" + n.remote.Dir},
	}
}

func write(t testing.TB, target, file, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(target, file), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// has tells whether the remote's branch has the file with the content.
func (n *node) has(file, content string) bool {
	got, err := n.remote.TryGit("cat-file", "blob", "main:"+file)
	return err == nil && got == content
}

// A pod writes, whatever becomes of the plugin: nothing is lost, nothing is committed twice,
// and no mount is touched.
func TestWrittenThroughRestarts(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Grow("main", "a", "1")
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.Start()
	v := n.written("v", "notes")
	target := n.MustPublish(v, 1)
	shows(t, target, "a", "1")
	rig.WantCode(t, n.Publish(v, rig.Pod(2)), codes.FailedPrecondition)
	before := mounts(t, n.KubeletDir)

	// In the middle of a quiesce.
	write(t, target, "term", "1")
	n.Plugin.Stop()
	if !n.has("term", "1") {
		t.Error("the end did not push what was written")
	}
	write(t, target, "down", "1")
	n.Start()
	n.MustPublish(v, 1) // The kubelet repeats it.
	process.Await(t, "what was written meanwhile to arrive", func() bool { return n.has("down", "1") })

	write(t, target, "kill", "1")
	n.Plugin.Kill()
	write(t, target, "kill", "2")
	n.Start()
	n.MustPublish(v, 1)
	process.Await(t, "what was written meanwhile to arrive", func() bool { return n.has("kill", "2") })
	if after := mounts(t, n.KubeletDir); !maps.Equal(after, before) {
		t.Errorf("the restarts make of the mounts %v %v", before, after)
	}

	write(t, target, "last", "1")
	n.MustUnpublish(v, 1)
	if !n.has("last", "1") {
		t.Error("the stop did not push what was written")
	}
	if got := n.remote.Git("rev-list", "--count", "main"); got != "5" {
		t.Errorf("%s commits: %s", got, n.remote.Git("log", "--format=%s", "main"))
	}
	n.remote.Git("fsck", "--strict")
}

// Without a class a volume is watched and told of; the class that is named later counts at
// once, and deleting the PersistentVolume removes the tree if that is its policy, also while
// the node is down.
func TestWrittenArmedLate(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Grow("main", "a", "1")
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.Start()
	v := n.written("v", "")
	target := n.MustPublish(v, 1)
	write(t, target, "b", "1")
	n.AwaitAnswer("/metrics", 200, `git_csi_pending_paths{claim="v",namespace="default"} 1`)
	n.reclaims("v", "notes")
	process.Await(t, "what was written to arrive", func() bool { return n.has("b", "1") })
	n.MustUnpublish(v, 1)
	tree := filepath.Join(n.Store, "volumes", "v", "tree")
	if _, err := os.Lstat(tree); err != nil {
		t.Errorf("the tree is gone with the pod: %v", err)
	}
	n.Plugin.Stop()
	n.API.DeleteVolume("v") // While the node is down.
	n.Start()
	process.Await(t, "the tree to be removed", func() bool { _, err := os.Lstat(tree); return errors.Is(err, unix.ENOENT) })
	if !n.has("b", "1") {
		t.Error("the remote has lost it")
	}
}

// Another class counts under a running pod as soon as the PersistentVolume names it: one
// that pauses the volume, one that cannot be used, and one that arms it again.
func TestWrittenUnderOtherClasses(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Grow("main", "a", "1")
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.API.PutClass("paused", driver.Name, map[string]string{"armed": "false"})
	n.API.PutClass("wrong", driver.Name, map[string]string{"push.quiesce": "1s", "zone": "x"})
	n.API.PutClass("foreign", "other.example", map[string]string{"x": "y"})
	n.Start()
	v := n.written("v", "notes")
	target := n.MustPublish(v, 1)
	const armed = `git_csi_armed{claim="v",namespace="default"} `
	n.AwaitAnswer("/metrics", 200, armed+"1")
	before := mounts(t, n.KubeletDir)

	n.written("v", "paused")
	n.AwaitAnswer("/metrics", 200, armed+"0")
	n.told("PersistentVolumeClaim", "GitVolumeUnarmed", "pauses the volume (armed=false)")
	write(t, target, "b", "1")
	n.AwaitAnswer("/metrics", 200, `git_csi_pending_paths{claim="v",namespace="default"} 1`)
	for class, words := range map[string]string{
		"wrong": "parameter push.quiesce", "foreign": "it is another driver's", "missing": "there is no such VolumeAttributesClass",
	} {
		n.written("v", class)
		n.told("Pod", "GitVolumeUnarmed", words)
		n.AwaitAnswer("/metrics", 200, `git_csi_volume_abnormal{claim="v",namespace="default",volume="v"} 1`)
	}
	if n.has("b", "1") {
		t.Error("it is committed without a class")
	}
	n.written("v", "notes")
	process.Await(t, "what was written to arrive", func() bool { return n.has("b", "1") })
	n.AwaitAnswer("/metrics", 200, armed+"1")
	n.AwaitAnswer("/metrics", 200, `git_csi_volume_abnormal{claim="v",namespace="default",volume="v"} 0`)
	if after := mounts(t, n.KubeletDir); !maps.Equal(after, before) {
		t.Errorf("the classes make of the mounts %v %v", before, after)
	}
	n.MustUnpublish(v, 1)
}
