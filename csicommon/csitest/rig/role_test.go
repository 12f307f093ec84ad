package rig

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"liken.sh/csicommon/csitest/apiserver"
)

func TestCompareRole(t *testing.T) {
	role := rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"volumeattributesclasses"}, Verbs: []string{"get", "list"}},
	}}
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
