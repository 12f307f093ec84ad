//go:build e2e

package pernode

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liken.sh/e2e/cluster"
)

// TestEachNodeHasItsOwnCopy also goes through what keeps the copies, and what
// removes them.
func TestEachNodeHasItsOwnCopy(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	volume := s.volume()
	for _, node := range kube.Nodes {
		s.pod(node, node, volume)
	}
	for _, node := range kube.Nodes {
		s.Runs(node, cluster.Soon)
		s.Exec(node, "echo "+node+" > /data/file")
	}
	for _, node := range kube.Nodes {
		s.Reads(node, "/data/file", node)
		s.Delete("pod", node)
	}
	for _, node := range kube.Nodes {
		copyStays(t, node, volume)
	}
	again := kube.Nodes[0]
	s.pod("again", again, volume)
	s.Runs("again", cluster.Soon)
	s.Reads("again", "/data/file", again)
	s.Delete("pod", "again")

	s.Delete("persistentvolumeclaim", volume)
	for _, node := range kube.Nodes {
		copyStays(t, node, volume)
	}
	s.Delete("persistentvolume", volume)
	copiesGo(t, volume)
}

// TestHeldCopyGoesAfterItsPod deletes the objects under a running pod, past the
// protection that usually makes them wait.
func TestHeldCopyGoesAfterItsPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	volume := s.volume()
	held, free := kube.Nodes[0], kube.Nodes[1]
	s.pod("holder", held, volume)
	s.pod("other", free, volume)
	s.Runs("holder", cluster.Soon)
	s.Runs("other", cluster.Soon)
	s.Delete("pod", "other")

	s.Delete("persistentvolumeclaim", volume, "--wait=false")
	s.Delete("persistentvolume", volume, "--wait=false")
	copyStays(t, free, volume)
	unprotect := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := kube.Client.CoreV1().PersistentVolumeClaims(s.Name).Patch(t.Context(), volume, types.MergePatchType, unprotect, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// With its claim gone, the volume may be unprotected and gone already.
	if _, err := kube.Client.CoreV1().PersistentVolumes().Patch(t.Context(), volume, types.MergePatchType, unprotect, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	copyGoes(t, free, volume)
	copyStays(t, held, volume)
	s.Exec("holder", "echo on > /data/file")
	s.Reads("holder", "/data/file", "on")
	s.Delete("pod", "holder")
	copyGoes(t, held, volume)
}

// TestForceDeletedPod replaces a pod that the API server forgets before the kubelet
// has ended it.
func TestForceDeletedPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	volume := s.volume()
	node := kube.Nodes[1]
	s.pod("first", node, volume, func(spec *corev1.PodSpec) {
		spec.Containers[0].Command = []string{"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}
	})
	s.Runs("first", cluster.Soon)
	s.Exec("first", "echo first > /data/file")
	s.Delete("pod", "first", "--force", "--grace-period=0")
	s.pod("second", node, volume)
	s.Runs("second", cluster.Patient)
	s.Reads("second", "/data/file", "first")
	if targets := targetsOf(t, node, volume); len(targets) != 1 {
		t.Errorf("the copy is mounted at %q", targets)
	}
}

// targetsOf are the pods' mounts of the copy on the node.
func targetsOf(t *testing.T, node, volume string) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(kube.MustOnNode(t, node, "cat", "/proc/self/mountinfo")) {
		if fields := strings.Fields(line); strings.HasSuffix(fields[4], "/kubernetes.io~csi/"+volume+"/mount") {
			found = append(found, fields[4])
		}
	}
	return found
}

// TestDeploymentMoves has one pod in the cluster by its access mode, that goes to
// another node and back.
func TestDeploymentMoves(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	volume := s.volume(func(v *corev1.PersistentVolume) {
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	})
	one := int32(1)
	labels := map[string]string{"app": "mover"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "mover"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       cluster.PodSpec(kube.Nodes[0], cluster.Claim(volume)),
			},
		},
	}
	if _, err := kube.Client.AppsV1().Deployments(s.Name).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.movedTo(kube.Nodes[0])
	s.Exec("deployment/mover", "echo here > /data/file")
	for _, step := range []struct{ node, want string }{{kube.Nodes[1], ""}, {kube.Nodes[0], "here"}} {
		patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"nodeSelector":{%q:%q}}}}}`, corev1.LabelHostname, step.node)
		if _, err := kube.Client.AppsV1().Deployments(s.Name).Patch(t.Context(), "mover", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.movedTo(step.node)
		if got := s.Exec("deployment/mover", "cat /data/file 2>/dev/null || true"); got != step.want {
			t.Errorf("on %s the file has %q, want %q", step.node, got, step.want)
		}
	}
}

// movedTo waits until the only pod of the Deployment runs on the node.
func (s *space) movedTo(node string) {
	s.T.Helper()
	cluster.Eventually(s.T, cluster.Patient, "the pod runs on "+node, func() error {
		pods, err := kube.Client.CoreV1().Pods(s.Name).List(s.T.Context(), metav1.ListOptions{LabelSelector: "app=mover"})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Spec.NodeName != node {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return kube.Ready(s.T.Context(), s.Name, pods.Items[0].Name)
	})
}
