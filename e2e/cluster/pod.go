package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Idle is a container that does nothing, and ends at once when it is told to.
const Idle = "trap exit TERM; sleep infinity & wait"

// PodSpec is a pod with a shell on the node, any when empty, with the volume at /data.
func PodSpec(node string, data corev1.VolumeSource) corev1.PodSpec {
	soonGone := int64(2)
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: &soonGone,
		Containers: []corev1.Container{{
			Name: "shell", Image: "busybox:stable", ImagePullPolicy: corev1.PullNever,
			Command:      []string{"sh", "-c", Idle},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: data}},
	}
	if node != "" {
		spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	return spec
}

// Claim is the volume of the claim.
func Claim(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

// Start makes a pod, and does not wait for it.
func (s *Space) Start(name string, spec corev1.PodSpec, change ...func(*corev1.PodSpec)) {
	s.T.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	for _, c := range change {
		c(&pod.Spec)
	}
	if _, err := s.kube.Client.CoreV1().Pods(s.Name).Create(s.T.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.T.Fatalf("make pod %s: %v", name, err)
	}
}

// Get is the pod as it is now.
func (s *Space) Get(name string) *corev1.Pod {
	s.T.Helper()
	pod, err := s.kube.Client.CoreV1().Pods(s.Name).Get(s.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.T.Fatalf("get pod %s: %v", name, err)
	}
	return pod
}

// Runs waits until the pod is ready.
func (s *Space) Runs(name string, within time.Duration) {
	s.T.Helper()
	Eventually(s.T, within, "pod "+name+" runs", func() error {
		return s.kube.Ready(s.T.Context(), s.Name, name)
	})
}

// Ready returns nil when the pod is, and else what there is.
func (c *Cluster) Ready(ctx context.Context, namespace, name string) error {
	pod, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
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

// Unharmed fails the test if the pod is not the one it was, or was restarted.
func (s *Space) Unharmed(was *corev1.Pod) {
	s.T.Helper()
	is := s.Get(was.Name)
	if is.UID != was.UID || is.DeletionTimestamp != nil {
		s.T.Errorf("pod %s was replaced", was.Name)
	}
	for i, container := range is.Status.ContainerStatuses {
		if before := was.Status.ContainerStatuses[i].RestartCount; container.RestartCount != before {
			s.T.Errorf("the container of pod %s was restarted: %d times, before %d", was.Name, container.RestartCount, before)
		}
	}
}

// Try runs a shell's command in the pod.
func (s *Space) Try(pod, command string) (string, error) {
	text, err := s.kube.Try("", "kubectl", "--namespace", s.Name, "exec", pod, "--", "sh", "-c", command)
	return strings.TrimSpace(text), err
}

// Exec is Try for a command that has to succeed.
func (s *Space) Exec(pod, command string) string {
	s.T.Helper()
	text, err := s.Try(pod, command)
	if err != nil {
		s.T.Fatal(err)
	}
	return text
}

// Reads fails the test unless the file, seen from the pod, has that content.
func (s *Space) Reads(pod, file, want string) {
	s.T.Helper()
	if got := s.Exec(pod, "cat "+file); got != want {
		s.T.Errorf("pod %s reads %q in %s, want %q", pod, got, file, want)
	}
}

// HealthBecomes waits for the conditions of the volumes in the pod's status.
func (s *Space) HealthBecomes(pod string, want ...string) {
	s.T.Helper()
	Eventually(s.T, Patient, fmt.Sprintf("the health of the volumes is %q", want), func() error {
		got := []string{}
		for _, health := range s.Get(pod).Status.VolumeHealth {
			for _, condition := range health.HealthConditions {
				got = append(got, health.Name+" "+string(condition.Status)+" "+condition.Reason)
			}
		}
		if strings.Join(got, "\n") == strings.Join(want, "\n") {
			return nil
		}
		return fmt.Errorf("it is %q", got)
	})
}
