//go:build e2e

package pernode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/e2e/cluster"
)

// idle is a container that does nothing, and ends at once when it is told to.
const idle = "trap exit TERM; sleep infinity & wait"

// podSpec is a pod on the node, any when empty, with the claim at /data.
func podSpec(node, claim string) corev1.PodSpec {
	soonGone := int64(2)
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: &soonGone,
		Containers: []corev1.Container{{
			Name: "shell", Image: "busybox:stable", ImagePullPolicy: corev1.PullNever,
			Command:      []string{"sh", "-c", idle},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}},
	}
	if node != "" {
		spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	return spec
}

// pod makes one with the claim at /data.
func (s *space) pod(name, node, claim string, change ...func(*corev1.PodSpec)) {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: podSpec(node, claim)}
	for _, c := range change {
		c(&pod.Spec)
	}
	if _, err := kube.Client.CoreV1().Pods(s.name).Create(s.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("make pod %s: %v", name, err)
	}
}

func (s *space) get(name string) *corev1.Pod {
	s.t.Helper()
	pod, err := kube.Client.CoreV1().Pods(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatalf("get pod %s: %v", name, err)
	}
	return pod
}

// runs waits until the pod is ready.
func (s *space) runs(name string, within time.Duration) {
	s.t.Helper()
	cluster.Eventually(s.t, within, "pod "+name+" runs", func() error {
		return ready(s.t.Context(), s.name, name)
	})
}

func ready(ctx context.Context, namespace, name string) error {
	pod, err := kube.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is %s: %v", pod.Status.Phase, pod.Status.Conditions)
}

// unharmed fails the test if the pod is not the one it was, or was restarted.
func (s *space) unharmed(was *corev1.Pod) {
	s.t.Helper()
	is := s.get(was.Name)
	if is.UID != was.UID || is.DeletionTimestamp != nil {
		s.t.Errorf("pod %s was replaced", was.Name)
	}
	for i, container := range is.Status.ContainerStatuses {
		if before := was.Status.ContainerStatuses[i].RestartCount; container.RestartCount != before {
			s.t.Errorf("the container of pod %s was restarted: %d times, before %d", was.Name, container.RestartCount, before)
		}
	}
}

// exec runs a shell's command in the pod.
func (s *space) exec(pod, command string) string {
	s.t.Helper()
	return strings.TrimSpace(kube.Run(s.t, "kubectl", "--namespace", s.name, "exec", pod, "--", "sh", "-c", command))
}

// reads fails the test unless the file, seen from the pod, has that content.
func (s *space) reads(pod, file, want string) {
	s.t.Helper()
	if got := s.exec(pod, "cat "+file); got != want {
		s.t.Errorf("pod %s reads %q in %s, want %q", pod, got, file, want)
	}
}

// plugin is the driver's ready pod on the node, or what there is in its place.
func plugin(ctx context.Context, node string) (*corev1.Pod, error) {
	pods, err := kube.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + node,
		LabelSelector: "app.kubernetes.io/name=pernode",
	})
	if err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			return &pod, ready(ctx, namespace, pod.Name)
		}
	}
	return nil, errors.New("no pod of the driver is on " + node)
}

// pluginRuns waits for the driver's pod on the node.
func pluginRuns(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	cluster.Eventually(t, patient, "the plugin runs on "+node, func() (err error) {
		found, err = plugin(t.Context(), node)
		return err
	})
	return found
}
