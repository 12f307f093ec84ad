//go:build e2e

package pernode

import (
	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// pod makes one with the claim at /data.
func (s *space) pod(name, node, claim string, change ...func(*corev1.PodSpec)) {
	s.T.Helper()
	s.Start(name, cluster.PodSpec(node, cluster.Claim(claim)), change...)
}
