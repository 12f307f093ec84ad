//go:build e2e

package gitvolume

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liken.sh/e2e/cluster"
)

// tellsOnTheClaim waits for an Event of a sidecar on the claim that has all the words.
func (s *space) tellsOnTheClaim(claim, reason string, words ...string) {
	s.T.Helper()
	cluster.Eventually(s.T, cluster.Patient, claim+" says "+reason, func() error {
		said := s.Described("persistentvolumeclaim", claim, reason)
		for _, line := range said {
			if cluster.LineHas(line, words...) {
				return nil
			}
		}
		return fmt.Errorf("it says %q, want %q", said, words)
	})
}

// class makes a VolumeAttributesClass of the driver's, and removes it.
func (s *space) class(name string, parameters map[string]string) string {
	s.T.Helper()
	class := &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-" + name, Labels: map[string]string{gitDriver.Label(): s.Name}},
		DriverName: gitDriver.Name, Parameters: parameters,
	}
	classes := kube.Client.StorageV1().VolumeAttributesClasses()
	if _, err := classes.Create(s.T.Context(), class, metav1.CreateOptions{}); err != nil {
		s.T.Fatalf("make a class: %v", err)
	}
	s.T.Cleanup(func() { _ = classes.Delete(context.WithoutCancel(s.T.Context()), class.Name, metav1.DeleteOptions{}) })
	return class.Name
}

// written makes a writeable PersistentVolume with that policy, and its claim, and waits
// until they are bound.
func (s *space) written(policy corev1.PersistentVolumeReclaimPolicy) string {
	s.T.Helper()
	name := s.Volume(corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeAttributes: attributes(s.HTTP("public"))}},
	}, func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
	cluster.Eventually(s.T, cluster.Patient, name+" is bound", func() error {
		pv, err := kube.Client.CoreV1().PersistentVolumes().Get(s.T.Context(), name, metav1.GetOptions{})
		if err == nil && pv.Status.Phase != corev1.VolumeBound {
			err = fmt.Errorf("it is %s", pv.Status.Phase)
		}
		return err
	})
	return name
}

// TestClassOfAClaim has a class that is wrong refused, with the parameter that is, and one
// that is right written into the volume, where the node reads it.
func TestClassOfAClaim(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Commit(t, "public", "main", "file", "one")
	claim := s.written(corev1.PersistentVolumeReclaimRetain)
	name := func(class string) {
		patch := fmt.Appendf(nil, `{"spec":{"volumeAttributesClassName":%q}}`, class)
		if _, err := kube.Client.CoreV1().PersistentVolumeClaims(s.Name).Patch(t.Context(), claim, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatalf("name a class: %v", err)
		}
	}
	name(s.class("wrong", map[string]string{"push.quiesce": "1s"}))
	s.tellsOnTheClaim(claim, "VolumeModifyFailed", "push.quiesce", "5s or more")
	right := s.class("right", map[string]string{"push.quiesce": "5s"})
	name(right)
	cluster.Eventually(t, cluster.Patient, "the class counts", func() error {
		pv, err := kube.Client.CoreV1().PersistentVolumes().Get(t.Context(), claim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if is := pv.Spec.VolumeAttributesClassName; is == nil || *is != right {
			return fmt.Errorf("the volume has the class %v", is)
		}
		return nil
	})
}

// TestReclaim has a volume with the policy Delete go with its claim, and one with Retain
// stay.
func TestReclaim(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	deleted, retained := s.written(corev1.PersistentVolumeReclaimDelete), s.written(corev1.PersistentVolumeReclaimRetain)
	s.Delete("persistentvolumeclaim", deleted)
	s.Delete("persistentvolumeclaim", retained)
	cluster.Eventually(t, cluster.Patient, deleted+" is gone", func() error {
		pv, err := kube.Client.CoreV1().PersistentVolumes().Get(t.Context(), deleted, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is %s with the finalizers %q", pv.Status.Phase, pv.Finalizers)
	})
	if pv, err := kube.Client.CoreV1().PersistentVolumes().Get(t.Context(), retained, metav1.GetOptions{}); err != nil || pv.DeletionTimestamp != nil {
		t.Errorf("the volume to be retained: %v, %v", pv, err)
	}
}

// TestNothingIsProvisioned has who asks for a volume told what to write.
func TestNothingIsProvisioned(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	class := s.Name + "-git"
	kube.Apply(t, fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: %[1]s
provisioner: git.liken.sh
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: asked
  namespace: %[2]s
spec:
  storageClassName: %[1]s
  accessModes: [ReadWriteOncePod]
  resources:
    requests: {storage: 1Gi}
`, class, s.Name))
	t.Cleanup(func() { kube.Run(t, "kubectl", "delete", "storageclass", class) })
	s.tellsOnTheClaim("asked", "ProvisioningFailed", "PersistentVolume", "{namespace: "+s.Name+", name: asked}")
}

// TestAnUninstallationIsStopped while a volume would be left behind.
func TestAnUninstallationIsStopped(t *testing.T) {
	s := newSpace(t)
	volume := s.written(corev1.PersistentVolumeReclaimDelete)
	cluster.Eventually(t, cluster.Patient, "the volume has a finalizer", func() error {
		pv, err := kube.Client.CoreV1().PersistentVolumes().Get(t.Context(), volume, metav1.GetOptions{})
		if err == nil && !strings.Contains(strings.Join(pv.Finalizers, " "), "external-provisioner.volume.kubernetes.io/finalizer") {
			err = fmt.Errorf("its finalizers are %q", pv.Finalizers)
		}
		return err
	})
	said, err := kube.Try("", "helm", "uninstall", gitDriver.Release, "--namespace", gitDriver.Namespace)
	if err == nil {
		t.Fatalf("it is uninstalled: %s", said)
	}
	if all := said + err.Error(); !strings.Contains(all, volume) {
		t.Errorf("it does not name %s: %s", volume, all)
	}
	for _, node := range kube.Nodes {
		gitDriver.PluginRuns(t, node)
	}
}

// controllerAddress is that of the webhook of a controller's pod.
func controllerAddress(ctx context.Context) (string, error) {
	pods, err := kube.Client.CoreV1().Pods(gitDriver.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=controller"})
	if err != nil {
		return "", err
	}
	for _, pod := range pods.Items {
		serves := false
		for _, port := range pod.Spec.Containers[0].Ports {
			serves = serves || port.Name == "webhook"
		}
		if pod.DeletionTimestamp == nil && serves && pod.Status.PodIP != "" {
			return pod.Status.PodIP + ":8080", kube.Ready(ctx, gitDriver.Namespace, pod.Name)
		}
	}
	return "", errors.New("no controller serves the webhook")
}

// TestWebhook has a volume that nobody pulls pulled on every node when its forge says so,
// and by nobody else.
func TestWebhook(t *testing.T) {
	s := newSpace(t)
	s.Commit(t, "private", "main", "file", "one")
	s.secret("key", s.KeySecret())
	s.secret("forge", map[string]string{"secret": "s3cret"})
	claim := s.claim("key", attributes(s.SSH("private"), "pull", "on-demand", "webhookSecret", "forge"))
	s.onEachNode(readOnly(claim))
	t.Cleanup(func() { gitDriver.Rollback(t) })
	gitDriver.Upgrade(t, "--set", "webhook.enabled=true", "--set", "webhook.namespaces={"+s.Name+"}", "--set", "controller.replicas=2")
	var address string
	cluster.Eventually(t, cluster.Patient, "the webhook is served", func() (err error) {
		address, err = controllerAddress(t.Context())
		return err
	})
	// The nodes reach the pods, and have busybox.
	push := func(token string) (string, error) {
		return kube.OnNode(kube.Nodes[0], "busybox", "wget", "-q", "-O", "-", "--header", "X-Gitlab-Event: Push Hook", "--header", "X-Gitlab-Token: "+token,
			"--post-data", fmt.Sprintf(`{"object_kind":"push","ref":"refs/heads/main","project":{"git_ssh_url":%q}}`, s.SSH("private")),
			"http://"+address+"/webhook/"+s.Name+"/forge")
	}
	s.Commit(t, "private", "main", "file", "two")
	if said, err := push("wrong"); err == nil {
		t.Errorf("a wrong secret is answered %q", said)
	}
	if said, err := push("s3cret"); err != nil || said != "1 volumes pull refs/heads/main\n" {
		t.Errorf("a push is answered %q, %v", said, err)
	}
	for _, node := range kube.Nodes {
		s.shows(node, "file", "two")
	}
}
