package page

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

const text = `
| Metric | Type | Labels | |
|---|---|---|---|
| ` + "`copies`" + ` | gauge | | how many |
| ` + "`refusals_total`" + ` | counter | ` + "`reason`, `node`" + ` | how often |

` + "```yaml" + `
apiVersion: v1
kind: ServiceAccount
metadata: {name: other}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: plugin}
rules:
  - {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
  - {apiGroups: [storage.k8s.io], resources: [volumeattributesclasses], verbs: [get, list]}
` + "```" + `
`

func TestDocumented(t *testing.T) {
	want := map[string]Series{"copies": {"gauge", ""}, "refusals_total": {"counter", "node reason"}}
	if got := Documented(text); !maps.Equal(got, want) {
		t.Errorf("the page has %v, want %v", got, want)
	}
}

func TestRole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	role := Role(t, file)
	if role.Name != "plugin" || len(role.Rules) != 2 {
		t.Errorf("the role is %+v", role)
	}
}
