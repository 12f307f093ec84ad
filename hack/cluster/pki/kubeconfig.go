package pki

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Kubeconfig is a kubeconfig that carries everything inline, so that it can be
// moved.
func Kubeconfig(server, user string, authority []byte, pair Pair) ([]byte, error) {
	// []byte is written as base64, which is what these fields hold.
	document := map[string]any{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []any{map[string]any{"name": "liken", "cluster": map[string]any{
			"server": server, "certificate-authority-data": authority,
		}}},
		"users": []any{map[string]any{"name": user, "user": map[string]any{
			"client-certificate-data": pair.Certificate, "client-key-data": pair.Key,
		}}},
		"contexts": []any{map[string]any{"name": "liken", "context": map[string]any{
			"cluster": "liken", "user": user,
		}}},
		"current-context": "liken",
	}
	content, err := yaml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig of %s: %w", user, err)
	}
	return content, nil
}
