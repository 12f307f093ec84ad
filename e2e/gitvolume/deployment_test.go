//go:build e2e

package gitvolume

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/e2e/cluster"
)

// deploy makes a Deployment on the node that has the directory of its name of the claim at
// /data, waits until it is there, and gives its pod's name.
func (s *space) deploy(name, node, claim string) string {
	s.T.Helper()
	labels := map[string]string{"deployment": name}
	spec := cluster.PodSpec(node, cluster.Claim(claim))
	spec.Containers[0].VolumeMounts[0].SubPath = name
	if _, err := kube.Client.AppsV1().Deployments(s.Name).Create(s.T.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{}); err != nil {
		s.T.Fatalf("make a Deployment: %v", err)
	}
	return s.deployed(name)
}

// deployed waits until the Deployment runs, and gives its pod's name.
func (s *space) deployed(name string) string {
	s.T.Helper()
	var pod string
	cluster.Eventually(s.T, cluster.Patient, "Deployment "+name+" runs", func() error {
		pods, err := kube.Client.CoreV1().Pods(s.Name).List(s.T.Context(), metav1.ListOptions{LabelSelector: "deployment=" + name})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].DeletionTimestamp != nil {
			return fmt.Errorf("it has %d pods, or one that ends", len(pods.Items))
		}
		pod = pods.Items[0].Name
		return kube.Ready(s.T.Context(), s.Name, pod)
	})
	return pod
}

// TestTwoDeployments write two directories of one branch, from two nodes, at the same time.
// Then somebody writes to a file that one of them writes too.
func TestTwoDeployments(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.secret("token", s.TokenSecret())
	s.Commit(t, "private", "main", "one/config", "config")
	class := s.Class(soon())
	claims := []string{s.writeable("private", class), s.writeable("private", class)}
	pods := []string{s.deploy("one", kube.Nodes[0], claims[0]), s.deploy("two", kube.Nodes[1], claims[1])}
	s.Reads(pods[0], "/data/config", "config")
	s.converge(pods)

	// What upstream changes under a subPath is seen there once the volume pushes.
	s.Commit(t, "private", "main", "one/config", "changed")
	s.Exec(pods[0], "echo more > /data/more")
	s.bothTell(pods[0], claims[0], "GitVolumeRebased", "of main")
	s.has("private", "main", "one/more", "more")
	s.Reads(pods[0], "/data/config", "changed")

	s.divergeAndHeal(pods, claims[0])

	// The next pod of a Deployment has what the last one wrote last.
	s.Exec(pods[1], "echo last > /data/last")
	kube.Run(t, "kubectl", "--namespace", s.Name, "delete", "pod", pods[1])
	s.has("private", "main", "two/last", "last")
	s.Reads(s.deployed("two"), "/data/last", "last")
}

// converge has the two pods write, longer than a quiesce apart so that each write is a
// push, and waits until the branch and its record have all of it.
func (s *space) converge(pods []string) {
	s.T.Helper()
	names := []string{"one", "two"}
	for i, name := range names {
		s.Exec(pods[i], "(for i in 1 2 3 4; do echo "+name+" > /data/$i; chmod 600 /data/$i; sleep 6; done) >/dev/null 2>&1 &")
	}
	var files []string
	for _, name := range names {
		for i := 1; i <= 4; i++ {
			files = append(files, fmt.Sprintf("%s/%d", name, i))
			s.has("private", "main", files[len(files)-1], name)
		}
	}
	cluster.Eventually(s.T, cluster.Soon, "the record has what both changed", func() error {
		record := s.record("private")
		for _, file := range files {
			if !cluster.LineHas(record, "0600", fmt.Sprintf("%q", file)) {
				return fmt.Errorf("it is\n%s", record)
			}
		}
		return nil
	})
	s.branches("private", "main")
	if merges := s.Git(s.T, "private", "rev-list --merges --count main"); merges != "0" {
		s.T.Errorf("there are %s merges", merges)
	}
	if empty := s.emptyCommits("private"); empty != "" {
		s.T.Errorf("commits change nothing: %s", empty)
	}
}

// divergeAndHeal has the first pod write what somebody else wrote, while the second goes
// on, and merges its side branch.
func (s *space) divergeAndHeal(pods []string, claim string) {
	s.T.Helper()
	side := sideOf(claim)
	s.Commit(s.T, "private", "main", "one/config", "theirs")
	s.Exec(pods[0], "echo ours > /data/config")
	s.bothTell(pods[0], claim, "GitVolumeDiverged", side)
	s.has("private", side, "one/config", "ours")
	s.has("private", "main", "one/config", "theirs")
	s.Exec(pods[1], "echo on > /data/on")
	s.has("private", "main", "two/on", "on")
	if lines := s.Described("pod", pods[1], "GitVolumeDiverged"); len(lines) > 0 {
		s.T.Errorf("the other one is told of it:\n%s", strings.Join(lines, "\n"))
	}

	s.Merge(s.T, "private", side, "main")
	s.Exec(pods[0], "echo healed > /data/healed")
	s.bothTell(pods[0], claim, "GitVolumeHealed", side)
	s.has("private", "main", "one/healed", "healed")
	s.has("private", "main", "one/config", "ours")
	s.branches("private", "main")
}
