package nodetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/published"
)

// installPage has the ClusterRole; the chart's is compared with it where the chart is
// tested.
const installPage = "../../../docs/install.md"

// The plugin asks for nothing that the ClusterRole does not grant, and the ClusterRole grants
// nothing that it does not ask for.
func TestTheClusterRoleIsWhatThePluginCalls(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Grow("main", "a", "1")
	forge := gittest.StartHTTP(t, filepath.Dir(n.remote.Dir), gittest.HTTPOptions{User: "git", Password: "token-1"})
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.Start("--allow-insecure")

	inline := kubelet.Inline(rig.Pod(1), "config", map[string]string{"url": "file://" + n.remote.Dir})
	shows(t, n.MustPublish(inline, 1), "a", "1")
	claim := n.volume("read", "url", forge.URL("/"+filepath.Base(n.remote.Dir)), "pull", "on-demand")
	claim.StageSecret, claim.PublishSecret = map[string]string{"token": "token-1"}, map[string]string{"token": "token-1"}
	pv := apiserver.Volume("read", driver.Name, "read")
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "default", Name: "s"}
	pv.Spec.CSI.NodePublishSecretRef = pv.Spec.CSI.NodeStageSecretRef
	n.API.PutVolume(pv)
	read := n.MustPublish(claim, 2)
	written := n.written("v", "notes")
	n.reclaims("v", "notes")
	target := n.MustPublish(written, 3)
	write(t, target, "b", "1")
	process.Await(t, "what was written to arrive", func() bool { return n.has("b", "1") })
	n.demand(pv)
	shows(t, read, "b", "1")

	// A second pod is told no, and again after a restart: the Event is looked for, and counted up.
	second := rig.Pod(4)
	second.Namespace = "other"
	rig.WantCode(t, n.Publish(written, second), codes.FailedPrecondition)
	n.AwaitEvents("other", "pod-4 GitVolumeRefused 1")
	n.Plugin.Stop()
	n.Start("--allow-insecure")
	rig.WantCode(t, n.Publish(written, second), codes.FailedPrecondition)
	n.AwaitEvents("other", "pod-4 GitVolumeRefused 2")

	// A tree goes with its PersistentVolume, when no pod waits for it.
	rig.WantCode(t, n.Unpublish(written, second), codes.OK)
	n.MustUnpublish(inline, 1)
	n.MustUnpublish(claim, 2)
	n.MustUnpublish(written, 3)
	n.API.DeleteVolume("v")
	process.Await(t, "the tree to be removed", func() bool {
		_, err := os.Lstat(filepath.Join(n.Store, "volumes", "v"))
		return errors.Is(err, fs.ErrNotExist)
	})
	n.Plugin.Stop()

	rig.CompareRole(t, page.Role(t, installPage), n.API.Requests())
}

// reclaims has the PersistentVolume of a volume with the class be one that is deleted with its
// tree.
func (n *node) reclaims(pv, class string) {
	changed := apiserver.Volume(pv, driver.Name, pv)
	changed.Spec.VolumeAttributesClassName, changed.Spec.PersistentVolumeReclaimPolicy = &class, corev1.PersistentVolumeReclaimDelete
	n.API.PutVolume(changed)
}

// demand asks for a pull of the volume, as kubectl annotate does.
func (n *node) demand(pv *corev1.PersistentVolume) {
	pv.Annotations = map[string]string{published.DemandAnnotation: "now"}
	n.API.PutVolume(pv)
}
