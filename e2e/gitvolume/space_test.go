//go:build e2e

package gitvolume

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/e2e/cluster"
	"liken.sh/e2e/forge"
)

// often is the pull of volumes whose updates a test waits for.
const often = "2s"

// space is a namespace of a test's own, with a git server that stays when node-2 goes.
type space struct {
	*cluster.Space
	*forge.Forge
}

func newSpace(t *testing.T) *space {
	t.Helper()
	s := &space{Space: gitDriver.NewSpace(t)}
	t.Cleanup(func() { s.Remove() })
	gitDriver.ReportFailure(t, s.Name)
	s.Forge = forge.Start(t, kube, s.Name, kube.Nodes[0])
	return s
}

// attributes are a volume's, of its URL and pairs of names and values.
func attributes(url string, more ...string) map[string]string {
	all := map[string]string{"url": url}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// inline is a volume of the pod's own, with the Secret, none when empty.
func inline(secret string, attributes map[string]string) corev1.VolumeSource {
	yes := true
	source := &corev1.CSIVolumeSource{Driver: gitDriver.Name, ReadOnly: &yes, VolumeAttributes: attributes}
	if secret != "" {
		source.NodePublishSecretRef = &corev1.LocalObjectReference{Name: secret}
	}
	return corev1.VolumeSource{CSI: source}
}

// claim makes a read-only PersistentVolume and its claim, with the Secret, none when
// empty.
func (s *space) claim(secret string, attributes map[string]string) string {
	s.T.Helper()
	return s.Volume(s.volume(corev1.ReadOnlyMany, secret, attributes))
}

// volume is a PersistentVolume with the Secret, none when empty.
func (s *space) volume(mode corev1.PersistentVolumeAccessMode, secret string, attributes map[string]string) corev1.PersistentVolumeSpec {
	source := &corev1.CSIPersistentVolumeSource{VolumeAttributes: attributes}
	if secret != "" {
		source.NodeStageSecretRef = &corev1.SecretReference{Namespace: s.Name, Name: secret}
		source.NodePublishSecretRef = source.NodeStageSecretRef
	}
	return corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{mode},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: source},
	}
}

// readOnly is the volume of a claim as the driver wants it.
func readOnly(claim string) corev1.VolumeSource {
	source := cluster.Claim(claim)
	source.PersistentVolumeClaim.ReadOnly = true
	return source
}

// secret makes one, and returns its name.
func (s *space) secret(name string, content map[string]string) string {
	s.T.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: content}
	if _, err := kube.Client.CoreV1().Secrets(s.Name).Create(s.T.Context(), secret, metav1.CreateOptions{}); err != nil {
		s.T.Fatalf("make a Secret: %v", err)
	}
	return name
}

// shows waits until the pod reads that in the file.
func (s *space) shows(pod, file, want string) {
	s.T.Helper()
	cluster.Eventually(s.T, cluster.Patient, fmt.Sprintf("pod %s reads %q in %s", pod, want, file), func() error {
		got, err := s.Try(pod, "cat /data/"+file)
		if err == nil && got != want {
			err = fmt.Errorf("it reads %q", got)
		}
		return err
	})
}

// tells waits until `kubectl describe` shows an Event of the driver with the reason and
// the words.
func (s *space) tells(kind, name, reason, words string) {
	s.T.Helper()
	cluster.Eventually(s.T, cluster.Patient, fmt.Sprintf("%s %s shows %s with %q", kind, name, reason, words), func() error {
		lines := s.Described(kind, name, reason)
		for _, line := range lines {
			if strings.Contains(line, words) {
				return nil
			}
		}
		return fmt.Errorf("it shows %q", lines)
	})
}

// waits fails the test if the pod runs.
func (s *space) waits(pod string) {
	s.T.Helper()
	if s.Get(pod).Status.Phase != corev1.PodPending {
		s.T.Errorf("pod %s does not wait: it is %s", pod, s.Get(pod).Status.Phase)
	}
}

// pluginSays waits until the log of the plugin's pod has a line with all the words.
func pluginSays(t *testing.T, pod string, words ...string) {
	t.Helper()
	cluster.Eventually(t, cluster.Soon, fmt.Sprintf("the log of %s has %q", pod, words), func() error {
		log, err := kube.Try("", "kubectl", "--namespace", gitDriver.Namespace, "logs", pod)
		if err != nil {
			return err
		}
		if !cluster.LineHas(log, words...) {
			return errors.New("it has not")
		}
		return nil
	})
}
