package page

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"liken.sh/csicommon/csitest/apiserver"
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
		t.Fatalf("the role is %+v", role)
	}
	requests := []apiserver.Request{
		{Verb: "get", Resource: "namespaces", Name: "kube-system"},
		{Verb: "get", Group: "storage.k8s.io", Resource: "volumeattributesclasses", Name: "any"},
		{Verb: "list", Group: "storage.k8s.io", Resource: "volumeattributesclasses"},
	}
	if denied, unused := compareRole(t, role, requests); len(denied)+len(unused) > 0 {
		t.Errorf("denied are %v, unused %v", denied, unused)
	}
	for _, denied := range []apiserver.Request{
		{Verb: "get", Resource: "namespaces", Name: "default"},
		{Verb: "get", Resource: "volumeattributesclasses", Name: "any"},
		{Verb: "watch", Group: "storage.k8s.io", Resource: "volumeattributesclasses"},
		{Verb: "get", Resource: "secrets", Name: "s"},
	} {
		if got, _ := compareRole(t, role, []apiserver.Request{denied}); len(got) != 1 {
			t.Errorf("%+v is granted", denied)
		}
	}
	if _, unused := compareRole(t, role, requests[:2]); len(unused) != 1 || unused[0].verb != "list" {
		t.Errorf("unused are %v", unused)
	}
	if all := permissions(t, rbacv1.ClusterRole{}); all != nil {
		t.Errorf("no rule grants %v", all)
	}
}
