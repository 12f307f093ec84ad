//go:build e2e

package gitvolume

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/e2e/cluster"
)

// store is the driver's directory on each node.
const store = "/var/lib/liken/git"

// treesOf are the paths below a node's store of the trees that the handle has there, one a
// line: the one in use or kept, and those in the trash.
func treesOf(node, handle string) (string, error) {
	text, err := kube.OnNode(node, "sh", "-c", fmt.Sprintf("cd %s && { ls -d volumes/%[2]s/tree trash/kept/.[!.]*/%[2]s/tree 2>/dev/null || true; }", store, handle))
	return strings.TrimSpace(text), err
}

// isKept returns nil while the node has the handle's tree.
func isKept(node, handle string) error {
	trees, err := treesOf(node, handle)
	if err == nil && trees != "volumes/"+handle+"/tree" {
		err = fmt.Errorf("%s has the trees %q", node, trees)
	}
	return err
}

// treesGo waits until the nodes have the trees of the handles in the trash.
func treesGo(t *testing.T, nodes []string, handles ...string) {
	t.Helper()
	for _, node := range nodes {
		for _, handle := range handles {
			cluster.Eventually(t, cluster.Soon, fmt.Sprintf("the tree of %s is in the trash of %s", handle, node), func() error {
				trees, err := treesOf(node, handle)
				if err == nil && (!strings.HasPrefix(trees, "trash/kept/") || strings.Contains(trees, "\n")) {
					err = fmt.Errorf("there are the trees %q", trees)
				}
				return err
			})
		}
	}
}

// volumesGo waits until the PersistentVolumes are gone.
func volumesGo(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		cluster.Eventually(t, cluster.Patient, name+" is gone", func() error {
			pv, err := kube.Client.CoreV1().PersistentVolumes().Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return err
			}
			return fmt.Errorf("it is %s with the finalizers %q", pv.Status.Phase, pv.Finalizers)
		})
	}
}

// volumesAreReleased waits until the PersistentVolumes wait for somebody to delete them.
func volumesAreReleased(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		cluster.Eventually(t, cluster.Soon, name+" is released", func() error {
			pv, err := kube.Client.CoreV1().PersistentVolumes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if pv.DeletionTimestamp != nil {
				t.Fatalf("it is being deleted")
			}
			if pv.Status.Phase != corev1.VolumeReleased {
				return fmt.Errorf("it is %s", pv.Status.Phase)
			}
			return nil
		})
	}
}

// alsoWith has a pod mount more claims, each at its name.
func alsoWith(claims ...string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		for i, claim := range claims {
			name := fmt.Sprintf("also-%d", i)
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: cluster.Claim(claim)})
			spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + claim})
		}
	}
}

// TestReclaim has volumes with trees on both nodes go and stay, as their policies say when
// they are deleted, and one that stayed be used again.
func TestReclaim(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	for _, repository := range []string{"private", "private-kept"} {
		s.Commit(t, repository, "main", "file", "one")
	}
	class := s.Class(soon())
	deleted := reclaimed(corev1.PersistentVolumeReclaimDelete)
	beforeClaim, changed := s.writeable("private", class, deleted), s.writeable("private", class, deleted)
	withClaim, kept := s.writeable("private-kept", class, deleted), s.writeable("private-kept", class)
	first, last := kube.Nodes[0], kube.Nodes[1]
	for _, node := range []string{first, last} {
		s.Start(node, cluster.PodSpec(node, cluster.Claim(kept)), alsoWith(withClaim, beforeClaim, changed))
		s.Runs(node, cluster.Patient)
		s.Exec(node, "echo "+node+" > /data/ignored.tmp")
		if node == last {
			s.Refuse(t, "private-kept", "not now")
			s.Exec(node, "echo late > /data/unpushed; echo never > /"+withClaim+"/lost")
			kube.Run(t, "kubectl", "patch", "persistentvolume", changed, "--patch", `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
		}
		s.Delete("pod", node)
	}

	s.Delete("persistentvolume", beforeClaim, "--wait=false")
	s.Delete("persistentvolumeclaim", withClaim, beforeClaim, changed, kept)
	volumesAreReleased(t, changed, kept)
	volumesGo(t, withClaim, beforeClaim)
	s.Delete("persistentvolume", changed, kept)
	treesGo(t, kube.Nodes, withClaim, beforeClaim)
	pluginSays(t, gitDriver.PluginRuns(t, last).Name, "in the trash", withClaim, "unpushed=true")
	cluster.Steadily(t, 5*time.Second, "what is retained has to stay", func() error {
		return errors.Join(isKept(first, changed), isKept(last, changed), isKept(first, kept), isKept(last, kept))
	})

	s.hasNot("private-kept", "main", "unpushed")
	s.Accept(t, "private-kept")
	again := s.writeable("private-kept", class, func(volume *corev1.PersistentVolume) { volume.Spec.CSI.VolumeHandle = kept })
	s.Start("again", cluster.PodSpec(last, cluster.Claim(again)))
	s.Runs("again", cluster.Patient)
	s.Reads("again", "/data/ignored.tmp", last)
	s.Reads("again", "/data/unpushed", "late")
	s.has("private-kept", "main", "unpushed", "late")
	s.hasNot("private-kept", "main", "lost")
}

// TestTreeGoesWhenItsPluginIsBack deletes a volume while one node has no plugin.
func TestTreeGoesWhenItsPluginIsBack(t *testing.T) {
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	s.Commit(t, "private", "main", "file", "one")
	volume := s.writeable("private", "", reclaimed(corev1.PersistentVolumeReclaimDelete))
	up, down := kube.Nodes[0], kube.Nodes[1]
	for _, node := range []string{down, up} {
		s.Start(node, cluster.PodSpec(node, cluster.Claim(volume)))
		s.Runs(node, cluster.Patient)
		s.Delete("pod", node)
	}
	start := gitDriver.StopPlugin(t, down)
	s.Delete("persistentvolumeclaim", volume)
	volumesGo(t, volume)
	treesGo(t, []string{up}, volume)
	if err := isKept(down, volume); err != nil {
		t.Errorf("a node without a plugin: %v", err)
	}
	start()
	gitDriver.PluginRuns(t, down)
	treesGo(t, []string{down}, volume)
}
