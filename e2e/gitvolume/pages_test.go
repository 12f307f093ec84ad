//go:build e2e

package gitvolume

import (
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
		"username: deploy\n", "username: bot\n", "token: replace-me\n", "token: "+s.Token+"\n  ca.crt: |\n    "+certificate+"\n",
	).Replace(manifests)
}

// podsShow waits until that many pods with the label run, and each one's volume has the
// content in the file. The image has no shell, so it is read on the node.
func (s *space) podsShow(label string, number int, volume, file, want string) {
	s.T.Helper()
	cluster.Eventually(s.T, cluster.Patient, fmt.Sprintf("%d pods with %s show %q", number, label, want), func() error {
		pods, err := kube.Client.CoreV1().Pods(s.Name).List(s.T.Context(), metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return err
		}
		if len(pods.Items) != number {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		for _, pod := range pods.Items {
			if err := s.podShows(&pod, volume, file, want); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *space) podShows(pod *corev1.Pod, volume, file, want string) error {
	if err := kube.Ready(s.T.Context(), s.Name, pod.Name); err != nil {
		return err
	}
	path := fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~csi/%s/mount/%s", pod.UID, volume, file)
	got, err := kube.OnNode(pod.Spec.NodeName, "cat", path)
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
	s.podsShow("app=web", len(kube.Nodes), "shop-config", "shop.conf", "one")
	s.Commit(t, "private", "main", "shop.conf", "two")
	kube.MustShell(t, gitDriver.Block(t, guide, "Pulling when something was pushed", "sh", 0))
	s.podsShow("app=web", len(kube.Nodes), "shop-config", "shop.conf", "two")
}
