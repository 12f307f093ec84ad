package rig

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"liken.sh/csicommon/csitest/apiserver"
)

// permission is what a role grants: a verb on a resource of a group, of one name or of any.
type permission struct{ verb, group, resource, name string }

func (p permission) covers(r apiserver.Request) bool {
	return p.verb == r.Verb && p.group == r.Group && p.resource == r.Resource && (p.name == "" || p.name == r.Name)
}

// CompareRole wants all requests to be granted by the role, and all that it grants to have
// been asked for: the requests are those of a run in which the driver did all that it does.
func CompareRole(t testing.TB, role rbacv1.ClusterRole, requests []apiserver.Request) {
	t.Helper()
	denied, unused := compareRole(t, role, requests)
	for _, request := range denied {
		t.Errorf("a request is made that is not granted: %+v", request)
	}
	for _, p := range unused {
		t.Errorf("granted and never used: %+v", p)
	}
}

func compareRole(t testing.TB, role rbacv1.ClusterRole, requests []apiserver.Request) (denied []apiserver.Request, unused []permission) {
	t.Helper()
	granted := permissions(t, role)
	used := make(map[permission]bool)
	for _, request := range requests {
		i := slices.IndexFunc(granted, func(p permission) bool { return p.covers(request) })
		if i < 0 {
			denied = append(denied, request)
			continue
		}
		used[granted[i]] = true
	}
	return denied, slices.DeleteFunc(granted, func(p permission) bool { return used[p] })
}

func permissions(t testing.TB, role rbacv1.ClusterRole) (all []permission) {
	t.Helper()
	for _, rule := range role.Rules {
		if len(rule.NonResourceURLs) > 0 {
			t.Fatalf("the rule %+v is not of resources", rule)
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						all = append(all, permission{verb, group, resource, name})
					}
				}
			}
		}
	}
	return all
}
