//go:build e2e

package gitvolume

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// written makes a writeable PersistentVolume with that policy, and its claim, and waits
// until they are bound.
func (s *space) written(policy corev1.PersistentVolumeReclaimPolicy) string {
	s.T.Helper()
	name := s.writeable("private", "", reclaimed(policy))
	cluster.Eventually(s.T, cluster.Patient, name+" is bound", func() error {
		pv, err := kube.Client.CoreV1().PersistentVolumes().Get(s.T.Context(), name, metav1.GetOptions{})
		if err == nil && pv.Status.Phase != corev1.VolumeBound {
			err = fmt.Errorf("it is %s", pv.Status.Phase)
		}
		return err
	})
	return name
}

// nameClass names the class in the claim, as a person does.
func (s *space) nameClass(claim, class string) {
	s.T.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"volumeAttributesClassName":%q}}`, class)
	if _, err := kube.Client.CoreV1().PersistentVolumeClaims(s.Name).Patch(s.T.Context(), claim, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.T.Fatalf("name a class: %v", err)
	}
}

// TestClassOfAClaim changes the class that the claim of a pod names, while the pod writes:
// one that is wrong is refused, with the parameter that is, and one that is right counts
// for the volume as it runs, also one that pauses it.
func TestClassOfAClaim(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	before := s.Commit(t, "private", "main", "file", "one")
	// A class that the resizer has not seen yet when a claim names it never counts.
	wrong := s.Class(map[string]string{"push.quiesce": "1s"})
	right := s.Class(map[string]string{"push.quiesce": "5s"})
	paused := s.Class(map[string]string{"armed": "false"})
	claim := s.writeable("private", "")
	s.Start("pod", cluster.PodSpec("", cluster.Claim(claim)))
	s.Runs("pod", cluster.Patient)
	was := s.Get("pod")
	s.Exec("pod", "echo two > /data/file")

	s.nameClass(claim, wrong)
	s.tellsOnTheClaim(claim, "VolumeModifyFailed", "push.quiesce", "5s or more")
	if now := s.Git(t, "private", "rev-parse main"); now != before {
		t.Errorf("a class that is refused has main be at %s", now)
	}
	s.nameClass(claim, right)
	s.bothTell("pod", claim, "GitVolumeArmed", right)
	s.has("private", "main", "file", "two")

	s.nameClass(claim, paused)
	s.bothTell("pod", claim, "GitVolumeUnarmed", "pauses")
	s.Exec("pod", "echo three > /data/file")
	before = s.Git(t, "private", "rev-parse main")
	cluster.Steadily(t, 10*time.Second, "the volume is paused", func() error {
		if now := s.Git(t, "private", "rev-parse main"); now != before {
			return fmt.Errorf("main is at %s", now)
		}
		return nil
	})
	s.nameClass(claim, right)
	s.has("private", "main", "file", "three")
	s.Unharmed(was)
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

// TestAnUninstallationIsStopped while a volume would be left behind, and is called off as
// the chart's page says.
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
	t.Cleanup(func() { gitDriver.Rollback(t) })
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

// webhookAddress is that of a webhook's pod.
func webhookAddress(ctx context.Context) (string, error) {
	pods, err := kube.Client.CoreV1().Pods(gitDriver.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=webhook"})
	if err != nil {
		return "", err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			return pod.Status.PodIP + ":8080", kube.Ready(ctx, gitDriver.Namespace, pod.Name)
		}
	}
	return "", errors.New("there is no webhook")
}

// leads waits until the resizer of a pod of the controller lets classes count, and not that
// of another, which is gone, and gives the pod's name.
func leads(t *testing.T, another string) (pod string) {
	t.Helper()
	cluster.Eventually(t, cluster.Soon, "a controller leads", func() error {
		lease, err := kube.Client.CoordinationV1().Leases(gitDriver.Namespace).Get(t.Context(), "external-resizer-git-liken-sh", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == another {
			return errors.New("none does yet")
		}
		pod = *lease.Spec.HolderIdentity
		return kube.Ready(t.Context(), gitDriver.Namespace, pod)
	})
	return pod
}

// TestTwoControllers have a volume that nobody pulls pulled on every node when its forge
// says so, and by nobody else. When the one is killed that leads, a class still counts.
func TestTwoControllers(t *testing.T) {
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
		address, err = webhookAddress(t.Context())
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
	if said, err := push("s3cret"); err != nil || said != "1 volume pulls refs/heads/main\n" {
		t.Errorf("a push is answered %q, %v", said, err)
	}
	for _, node := range kube.Nodes {
		s.shows(node, "file", "two")
	}

	class := s.Class(soon())
	claim = s.written(corev1.PersistentVolumeReclaimRetain)
	killed := leads(t, "")
	kube.Run(t, "kubectl", "--namespace", gitDriver.Namespace, "delete", "pod", killed, "--force", "--grace-period=0", "--wait=false")
	leads(t, killed)
	s.nameClass(claim, class)
	cluster.Eventually(t, cluster.Patient, "the class counts", func() error {
		pv, err := kube.Client.CoreV1().PersistentVolumes().Get(t.Context(), claim, metav1.GetOptions{})
		if err == nil && (pv.Spec.VolumeAttributesClassName == nil || *pv.Spec.VolumeAttributesClassName != class) {
			err = fmt.Errorf("the volume has the class %v", pv.Spec.VolumeAttributesClassName)
		}
		return err
	})
}
