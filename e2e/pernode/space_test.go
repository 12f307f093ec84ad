//go:build e2e

package pernode

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/e2e/cluster"
)

const (
	// soon is for what takes seconds, on a machine that has much else to do.
	soon = 2 * time.Minute
	// patient is longer than twice the kubelet's longest pause between two tries to
	// mount, which is two minutes.
	patient = 5 * time.Minute
)

// space is a namespace of a test's own, with its PersistentVolumes.
type space struct {
	t    *testing.T
	name string
}

// newSpace makes one and, when the test ends, deletes it with all that is in it
// and waits until its copies are gone, so that no test finds another's. That the
// namespace itself is gone is waited for once, after all tests.
func newSpace(t *testing.T) *space {
	t.Helper()
	made, err := kube.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{"e2e": ""}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	s := &space{t: t, name: made.Name}
	t.Cleanup(s.remove)
	reportFailure(t, s.name)
	return s
}

// reportFailure shows the state of the namespaces and the plugin when the test fails.
func reportFailure(t *testing.T, namespaces ...string) {
	t.Cleanup(func() {
		kube.ReportFailure(t, namespaces,
			"get pods --output wide --namespace "+namespace,
			"logs daemonset/"+release+" --all-pods --prefix --tail 300 --namespace "+namespace)
	})
}

func (s *space) remove() {
	ctx := context.WithoutCancel(s.t.Context())
	volumes, err := kube.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{LabelSelector: "e2e=" + s.name})
	if err != nil {
		s.t.Fatalf("list the volumes: %v", err)
	}
	if err := kube.Client.CoreV1().Namespaces().Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
		s.t.Errorf("delete the namespace: %v", err)
	}
	var handles []string
	for _, volume := range volumes.Items {
		handles = append(handles, volume.Spec.CSI.VolumeHandle)
		if err := kube.Client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil {
			s.t.Errorf("delete a volume: %v", err)
		}
	}
	copiesGo(s.t, handles...)
}

// volume makes a PersistentVolume, whose name is also the handle, and a claim of
// that name.
func (s *space) volume(change ...func(*corev1.PersistentVolume)) string {
	s.t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	class := "per-node"
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"e2e": s.name}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              class,
			Capacity:                      size,
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		},
	}
	// The handle is the name, so it has to be known before the API server makes one.
	volume.Name = fmt.Sprintf("%s-%x", s.name, time.Now().UnixNano())
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: s.name, Name: volume.Name}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: volume.Name}
	for _, c := range change {
		c(volume)
	}
	if _, err := kube.Client.CoreV1().PersistentVolumes().Create(s.t.Context(), volume, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("make a volume: %v", err)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: volume.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      volume.Spec.AccessModes,
			Resources:        corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	if _, err := kube.Client.CoreV1().PersistentVolumeClaims(s.name).Create(s.t.Context(), claim, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("make a claim: %v", err)
	}
	return volume.Name
}

// delete has a resource of the namespace deleted, and waits until it is gone.
func (s *space) delete(kind, name string, arguments ...string) {
	s.t.Helper()
	kube.Run(s.t, append([]string{"kubectl", "--namespace", s.name, "delete", kind, name, "--timeout=3m"}, arguments...)...)
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
	cluster.Eventually(t, soon, "no copy is left on "+node, func() error {
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
