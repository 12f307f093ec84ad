//go:build e2e

package pernode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// space is a namespace of a test's own, with its PersistentVolumes.
type space struct{ *cluster.Space }

// newSpace makes one and, when the test ends, deletes it with all that is in it
// and waits until its copies are gone, so that no test finds another's.
func newSpace(t *testing.T) *space {
	t.Helper()
	s := &space{perNode.NewSpace(t)}
	t.Cleanup(func() { copiesGo(t, s.Remove()...) })
	perNode.ReportFailure(t, s.Name)
	return s
}

// volume makes a PersistentVolume, whose name is also the handle, and a claim of
// that name.
func (s *space) volume(change ...func(*corev1.PersistentVolume)) string {
	s.T.Helper()
	return s.Volume(corev1.PersistentVolumeSpec{
		StorageClassName: "per-node",
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
	}, change...)
}

// copies are the names of those on the node.
func copies(node string) ([]string, error) {
	text, err := kube.OnNode(node, "ls", "-A", store+"/copies")
	return strings.Fields(text), err
}

// copiesGo waits until no node has a copy of the handles.
func copiesGo(t *testing.T, handles ...string) {
	t.Helper()
	for _, node := range kube.Nodes {
		copyGoes(t, node, handles...)
	}
}

func copyGoes(t *testing.T, node string, handles ...string) {
	t.Helper()
	cluster.Eventually(t, cluster.Soon, "no copy is left on "+node, func() error {
		there, err := copies(node)
		if err != nil {
			return err
		}
		for _, handle := range handles {
			if slices.Contains(there, handle) {
				return fmt.Errorf("%s has a copy of %q", node, handle)
			}
		}
		return nil
	})
}

// copyStays looks for a while whether the node keeps its copy.
func copyStays(t *testing.T, node, handle string) {
	t.Helper()
	cluster.Steadily(t, 5*time.Second, "the copy has to stay", func() error {
		there, err := copies(node)
		if err == nil && !slices.Contains(there, handle) {
			err = fmt.Errorf("%s has no copy of %q", node, handle)
		}
		return err
	})
}
