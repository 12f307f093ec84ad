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
)

// pause is an image that every node has and that runs until it is ended. The guides' is
// made up.
const pause = "liken.sh/pause:1"

// filledIn is a page's manifest with what a reader has to replace: the address of the
// repositories, and the token. The namespace is the test's own, since the other driver's
// pages use the name too.
func (s *space) filledIn(manifests, repository, url string) string {
	s.T.Helper()
	page := "https://git.example.com/shop/" + repository + ".git"
	if !strings.Contains(manifests, page) {
		s.T.Fatalf("the page does not name %s:\n%s", page, manifests)
	}
	certificate := strings.ReplaceAll(strings.TrimSpace(s.CA), "\n", "\n    ")
	return strings.NewReplacer(
		page, url,
		"name: shop\n", "name: "+s.Name+"\n", "namespace: shop\n", "namespace: "+s.Name+"\n", "namespace: shop,", "namespace: "+s.Name+",",
		"username: deploy\n", "username: bot\n  ca.crt: |\n    "+certificate+"\n", "token: replace-me", "token: "+s.Token,
	).Replace(manifests)
}

// podsShow waits until that many pods with the label run, and each one's volume has the
// content in the file. The image has no shell, so it is read on the node.
func (s *space) podsShow(label string, number int, volume, file, want string) {
	s.T.Helper()
	cluster.Eventually(s.T, cluster.Patient, fmt.Sprintf("%d pods with %s show %q", number, label, want), func() error {
		pods, err := s.podsWith(label, number)
		for i := range pods {
			err = errors.Join(err, s.podShows(&pods[i], volume, file, want))
		}
		return err
	})
}

// podsWith are the pods with the label; that there are more or less is an error.
func (s *space) podsWith(label string, number int) ([]corev1.Pod, error) {
	pods, err := kube.Client.CoreV1().Pods(s.Name).List(s.T.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != number {
		return nil, fmt.Errorf("there are %d pods", len(pods.Items))
	}
	return pods.Items, nil
}

// on is the path, on the pod's node, of a file of its volume.
func on(pod *corev1.Pod, volume, file string) string {
	return fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~csi/%s/mount/%s", pod.UID, volume, file)
}

func (s *space) podShows(pod *corev1.Pod, volume, file, want string) error {
	if err := kube.Ready(s.T.Context(), s.Name, pod.Name); err != nil {
		return err
	}
	got, err := kube.OnNode(pod.Spec.NodeName, "cat", on(pod, volume, file))
	if err == nil && got != want {
		err = fmt.Errorf("pod %s shows %q", pod.Name, got)
	}
	return err
}

// TestInlineGuide is the guide, for a repository that everybody may read and for one that
// wants a token.
func TestInlineGuide(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	kube.NameImage(t, pause, "registry.example.com/web:1")
	s.Commit(t, "public", "main", "index.html", "pages")
	s.Commit(t, "private", "main", "index.html", "private pages")
	const guide = "guides/inline.md"
	kube.Apply(t, s.filledIn(gitDriver.Block(t, guide, "Files of a repository in a pod", "yaml", 0), "pages", s.HTTP("public")))
	kube.Apply(t, s.filledIn(gitDriver.Block(t, guide, "A private repository", "yaml", 0), "private", s.HTTPS("private")))
	s.podsShow("app=web", 2, "pages", "index.html", "pages")
	s.Runs("private", cluster.Patient)
	if err := s.podShows(s.Get("private"), "pages", "index.html", "private pages"); err != nil {
		t.Error(err)
	}
}

// TestClaimGuide is the guide, with the demand it ends with.
func TestClaimGuide(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	kube.NameImage(t, pause, "registry.example.com/web:2")
	s.Commit(t, "private", "main", "shop.conf", "one")
	const guide = "guides/claim.md"
	manifests := strings.ReplaceAll(gitDriver.Block(t, guide, "One repository for many pods", "yaml", 0), "/web:1", "/web:2")
	t.Cleanup(func() {
		kube.Run(t, "kubectl", "delete", "persistentvolume", "shop-config", "--ignore-not-found", "--wait=false")
	})
	kube.Apply(t, s.filledIn(manifests, "config", s.HTTPS("private")))
	s.podsShow("app=front", len(kube.Nodes), "shop-config", "shop.conf", "one")
	s.Commit(t, "private", "main", "shop.conf", "two")
	kube.MustShell(t, gitDriver.Block(t, guide, "Pulling when something was pushed", "sh", 0))
	s.podsShow("app=front", len(kube.Nodes), "shop-config", "shop.conf", "two")
}

// TestWriteableGuide is the guide, until its volume is deleted.
func TestWriteableGuide(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	kube.NameImage(t, pause, "registry.example.com/notes:1")
	s.Commit(t, "private", "main", "welcome", "one")
	const guide, volume, label = "guides/writeable.md", "shop-notes", "app=notes"
	// A tree that stayed would be in the way of the next run: its forge is another.
	t.Cleanup(func() {
		kube.Run(t, "kubectl", "patch", "persistentvolume", volume, "--patch", `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		kube.Run(t, "kubectl", "--namespace", s.Name, "delete", "deployment", "notes", "--ignore-not-found", "--cascade=foreground")
		kube.Run(t, "kubectl", "--namespace", s.Name, "delete", "persistentvolumeclaim", "notes", "--ignore-not-found")
		kube.Run(t, "kubectl", "delete", "persistentvolume", volume, "--ignore-not-found") // The controller may be quicker.
		kube.Run(t, "kubectl", "delete", "volumeattributesclass", "notes")
		for _, node := range kube.Nodes {
			cluster.Eventually(t, cluster.Soon, node+" has no tree of "+volume, func() error {
				_, err := kube.OnNode(node, "test", "!", "-e", store+"/volumes/"+volume)
				return err
			})
		}
	})
	kube.Apply(t, s.filledIn(gitDriver.Block(t, guide, "A directory whose history is on the forge", "yaml", 0), "notes", s.HTTPS("private")))
	s.podsShow(label, 1, volume, "welcome", "one")
	pods, err := s.podsWith(label, 1)
	if err != nil {
		t.Fatal(err)
	}
	pod := &pods[0]
	kube.MustOnNode(t, pod.Spec.NodeName, "sh", "-c", "echo two > "+on(pod, volume, "note")+"; echo draft > "+on(pod, volume, "note.tmp"))
	s.bothTell(pod.Name, "notes", "GitVolumeArmed", "class notes")
	s.bothTell(pod.Name, "notes", "GitVolumePushed", "1 path")
	s.has("private", "main", "note", "two")
	s.hasNot("private", "main", "note.tmp")
	if got := s.Git(t, "private", "log -1 --format=%B main"); got != "Update note\n\nA note\n\nVolume: "+s.Name+"/notes" {
		t.Errorf("the commit says %q", got)
	}
}
