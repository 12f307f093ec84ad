// Package forge is a git server in the cluster, of a test's own: OpenSSH's sshd and
// git-http-backend in a pod, with repositories that the test commits to, and that can be
// stopped and started again.
//
// It must never know a driver.
package forge

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"liken.sh/e2e/cluster"
)

//go:embed serve.sh
var serve string

// image is what hack/cluster makes for this, and user who may read private repositories
// with the token.
const (
	image = "liken.sh/git-server:1"
	user  = "bot"
)

// name is the pod's, which ends with its namespace.
const name = "forge"

// Forge is a running server. A repository whose name begins with "private" wants a
// credential over HTTP; SSH always does. Clients find it at the pod's address, since the
// cluster has no name server and no address of a Service works in it. The address stays
// while the server is stopped and started.
type Forge struct {
	// Token is the password, and Key the private key, of somebody who may read all.
	Token, Key string
	// CA is the certificate that HTTPS clients have to trust, and KnownHosts what SSH's
	// have to.
	CA, KnownHosts string

	kube      *cluster.Cluster
	namespace string
	address   string
}

// Start makes a server in the namespace, on the node, and waits until it serves.
func Start(t testing.TB, kube *cluster.Cluster, namespace, node string) *Forge {
	t.Helper()
	f := &Forge{Token: "token-" + rand.Text(), kube: kube, namespace: namespace}
	if _, err := kube.Client.CoreV1().Pods(namespace).Create(t.Context(), f.pod(node), metav1.CreateOptions{}); err != nil {
		t.Fatalf("make the git server: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, err := f.try("", "tail -n 100 /srv/*.log")
			t.Logf("the git server says (%v)\n%s", err, text)
		}
	})
	cluster.Eventually(t, cluster.Soon, "the git server runs", func() error {
		return kube.Ready(t.Context(), namespace, name)
	})
	pod, err := kube.Client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("get the git server: %v", err)
	}
	f.address = pod.Status.PodIP
	f.Key = f.run(t, "", "cat /srv/key")
	f.CA = f.run(t, "", "cat /srv/tls.crt")
	for line := range strings.Lines(f.run(t, "", "cat /etc/ssh/ssh_host_*_key.pub")) {
		f.KnownHosts += f.address + " " + line
	}
	return f
}

func (f *Forge) pod(node string) *corev1.Pod {
	soonGone := int64(2)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &soonGone,
			NodeSelector:                  map[string]string{corev1.LabelHostname: node},
			Containers: []corev1.Container{{
				Name: name, Image: image, ImagePullPolicy: corev1.PullNever,
				Command: []string{"sh", "-c", serve},
				Env: []corev1.EnvVar{
					{Name: "TOKEN", Value: f.Token},
					{Name: "ADDRESS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
				},
				// The last that is started. It is asked once only: the test stops it.
				StartupProbe: &corev1.Probe{
					ProbeHandler:     corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)}},
					PeriodSeconds:    1,
					FailureThreshold: int32(cluster.Soon.Seconds()),
				},
			}},
		},
	}
}

// HTTP is the URL of a repository for everybody.
func (f *Forge) HTTP(repository string) string {
	return fmt.Sprintf("http://%s:8080/git/%s.git", f.address, repository)
}

// HTTPS is the URL for who trusts CA.
func (f *Forge) HTTPS(repository string) string {
	return fmt.Sprintf("https://%s:8443/git/%s.git", f.address, repository)
}

// SSH is the URL for who has Key.
func (f *Forge) SSH(repository string) string {
	return fmt.Sprintf("ssh://git@%s/srv/git/%s.git", f.address, repository)
}

// TokenSecret is what a Secret for HTTPS holds.
func (f *Forge) TokenSecret() map[string]string {
	return map[string]string{"username": user, "token": f.Token, "ca.crt": f.CA}
}

// KeySecret is what a Secret for SSH holds.
func (f *Forge) KeySecret() map[string]string {
	return map[string]string{"ssh-privatekey": f.Key, "known_hosts": f.KnownHosts}
}

// Commit commits the file with that content to the branch, of a repository that is made
// when it is not there, and returns the commit's id.
func (f *Forge) Commit(t testing.TB, repository, branch, file, content string) string {
	t.Helper()
	return strings.TrimSpace(f.run(t, content, fmt.Sprintf("sh /srv/commit %s %s %s", repository, branch, file)))
}

// Merge merges the branch, which counts where the two conflict, and returns the commit's
// id. Somebody has to have committed to the repository before.
func (f *Forge) Merge(t testing.TB, repository, branch, into string) string {
	t.Helper()
	return strings.TrimSpace(f.run(t, "", fmt.Sprintf("sh /srv/merge %s %s %s", repository, branch, into)))
}

// Refuse has the repository refuse what is pushed to it, with these words, until Accept.
func (f *Forge) Refuse(t testing.TB, repository, words string) {
	t.Helper()
	f.run(t, "", fmt.Sprintf("sh /srv/refuse %s '%s'", repository, words))
}

// Accept ends Refuse.
func (f *Forge) Accept(t testing.TB, repository string) {
	t.Helper()
	f.run(t, "", fmt.Sprintf("rm /srv/git/%s.git/hooks/pre-receive", repository))
}

// TryGit runs a command of git in the repository, a shell's words after `git`, and returns
// what it wrote without blanks around it.
func (f *Forge) TryGit(repository, command string) (string, error) {
	text, err := f.try("", fmt.Sprintf("git -C /srv/git/%s.git %s", repository, command))
	return strings.TrimSpace(text), err
}

// Git is TryGit for a command that has to succeed.
func (f *Forge) Git(t testing.TB, repository, command string) string {
	t.Helper()
	text, err := f.TryGit(repository, command)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// DeleteBranch takes a branch away.
func (f *Forge) DeleteBranch(t testing.TB, repository, branch string) {
	t.Helper()
	f.Git(t, repository, "update-ref -d refs/heads/"+branch)
}

// Stop ends the servers: connections are refused from then on.
func (f *Forge) Stop(t testing.TB) {
	t.Helper()
	f.run(t, "", "sh /srv/stop")
}

// Resume starts them again.
func (f *Forge) Resume(t testing.TB) {
	t.Helper()
	f.run(t, "", "sh /srv/start")
}

func (f *Forge) try(input, command string) (string, error) {
	return f.kube.Try(input, "kubectl", "--namespace", f.namespace, "exec", "--stdin", name, "--", "sh", "-c", command)
}

func (f *Forge) run(t testing.TB, input, command string) string {
	t.Helper()
	text, err := f.try(input, command)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
