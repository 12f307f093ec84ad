//go:build e2e

package pernode

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// TestSecondPodWaits is refused again and again with one line, also by a driver
// that was started anew, and starts when the first pod is gone.
func TestSecondPodWaits(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	volume := s.volume()
	node := kube.Nodes[0]
	s.pod("first", node, volume)
	s.Runs("first", cluster.Soon)
	s.Exec("first", "echo first > /data/file")
	s.pod("second", node, volume)
	reaches := func(least int) {
		t.Helper()
		cluster.Eventually(t, cluster.Patient, fmt.Sprintf("%d refusals are one line", least), func() error {
			got, err := s.Count("second", "PerNodeVolumeHeld")
			if err == nil && got < least {
				err = fmt.Errorf("it says %d", got)
			}
			return err
		})
	}
	reaches(4)
	if line := s.Described("pod", "second", "PerNodeVolumeHeld")[0]; !strings.Contains(line, "by pod "+s.Name+"/first") {
		t.Errorf("the holder is not named: %s", line)
	}

	perNode.RestartPlugin(t, node)
	refused, err := s.Count("second", "PerNodeVolumeHeld")
	if err != nil {
		t.Fatal(err)
	}
	reaches(refused + 1)

	if err := kube.Ready(t.Context(), s.Name, "second"); err == nil {
		t.Error("the second pod runs beside the first")
	}
	s.Delete("pod", "first")
	s.Runs("second", cluster.Patient)
	s.Reads("second", "/data/file", "first")
}

// TestRefusedVolumes are those that a mistake in the PersistentVolume makes
// unusable: the words reach the person who looks at the pod.
func TestRefusedVolumes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	rows := []struct {
		name, reason, want string
		change             func(*corev1.PersistentVolume)
	}{
		{
			"handle", "PerNodeVolumeRefused", `volume handle "Upper" is refused: byte 1 is the upper-case letter 'U', only lower case is allowed`,
			func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "Upper" },
		},
		{
			"escape", "PerNodeVolumeRefused", `volume handle "../../etc" is refused: byte 3 is '/', a handle is one path component`,
			func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "../../etc" },
		},
		{
			"option", "PerNodeMountFailed", `mount option "discard": not an accepted mount option (accepted: ro, noexec, nosuid, nodev, noatime)`,
			func(v *corev1.PersistentVolume) { v.Spec.MountOptions = []string{"discard"} },
		},
	}
	for _, row := range rows {
		s.pod(row.name, "", s.volume(row.change))
	}
	for _, row := range rows {
		cluster.Eventually(t, cluster.Patient, row.name+" is refused in words", func() error {
			lines := s.Described("pod", row.name, row.reason)
			if len(lines) == 0 || !strings.Contains(lines[0], row.want) {
				return fmt.Errorf("got %q, want %q", lines, row.want)
			}
			return nil
		})
	}
}

// TestReadOnly has one volume for all: a pod that fills it, and pods that may not.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	node := kube.Nodes[1]
	volume := s.volume()
	s.pod("writer", node, volume)
	s.Runs("writer", cluster.Soon)
	s.Exec("writer", "echo content > /data/file")
	s.Delete("pod", "writer")

	s.pod("reader", node, volume, func(spec *corev1.PodSpec) {
		spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
		spec.Containers[0].VolumeMounts[0].ReadOnly = true
	})
	s.Runs("reader", cluster.Soon)
	s.Reads("reader", "/data/file", "content")
	if said := s.Exec("reader", "echo no > /data/file || true; grep ' /data ' /proc/self/mountinfo"); !strings.Contains(said, " ro,") {
		t.Errorf("the pod's mount is %q", said)
	}
	s.Reads("reader", "/data/file", "content")
	optionsAre(t, node, "/copies/"+volume+" ", "ro")

	option := s.volume(func(v *corev1.PersistentVolume) {
		v.Spec.MountOptions = []string{"ro"}
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	})
	s.pod("option", node, option, func(spec *corev1.PodSpec) { spec.Containers[0].VolumeMounts[0].ReadOnly = true })
	s.Runs("option", cluster.Soon)
	optionsAre(t, node, "/copies/"+option+" ", "ro")
	if got := s.Exec("option", "touch /data/file 2>/dev/null && echo written || echo refused"); got != "refused" {
		t.Errorf("a write was %s", got)
	}
}
