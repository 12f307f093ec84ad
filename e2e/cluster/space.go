package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Soon is for what takes seconds, on a machine that has much else to do.
	Soon = 5 * time.Minute
	// Patient is longer than that by twice the kubelet's longest pause between two tries
	// to mount, which is two minutes.
	Patient = 9 * time.Minute
)

// Space is a namespace of a test's own.
type Space struct {
	T    *testing.T
	Name string
	// Driver is the one under test.
	Driver *Driver
	kube   *Cluster
}

// NewSpace makes one, and keeps the nodes from being taken away from it, unless the test
// said something else of them before. Who makes it has it removed.
func (d *Driver) NewSpace(t *testing.T) *Space {
	t.Helper()
	d.Kube.Undisturbed(t)
	made, err := d.Kube.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{d.Label(): ""}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	return d.InSpace(t, made.Name)
}

// InSpace is a namespace that somebody else makes and removes.
func (d *Driver) InSpace(t *testing.T, name string) *Space {
	return &Space{T: t, Name: name, Driver: d, kube: d.Kube}
}

// Remove has the namespace deleted with all that is in it, its volumes, whose handles are
// returned, and its classes. That they are gone is waited for once, after all tests.
func (s *Space) Remove() (handles []string) {
	s.T.Helper()
	ctx := context.WithoutCancel(s.T.Context())
	mine := metav1.ListOptions{LabelSelector: s.Driver.Label() + "=" + s.Name}
	volumes, err := s.kube.Client.CoreV1().PersistentVolumes().List(ctx, mine)
	if err != nil {
		s.T.Fatalf("list the volumes: %v", err)
	}
	if err := s.kube.Client.CoreV1().Namespaces().Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil {
		s.T.Errorf("delete the namespace: %v", err)
	}
	for _, volume := range volumes.Items {
		handles = append(handles, volume.Spec.CSI.VolumeHandle)
		if err := s.kube.Client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil {
			s.T.Errorf("delete a volume: %v", err)
		}
	}
	if err := s.kube.Client.StorageV1().VolumeAttributesClasses().DeleteCollection(ctx, metav1.DeleteOptions{}, mine); err != nil {
		s.T.Errorf("delete the classes: %v", err)
	}
	return handles
}

// Delete has a resource of the namespace deleted, and waits until it is gone.
func (s *Space) Delete(kind, name string, arguments ...string) {
	s.T.Helper()
	s.kube.Run(s.T, append([]string{"kubectl", "--namespace", s.Name, "delete", kind, name, "--timeout=3m"}, arguments...)...)
}
