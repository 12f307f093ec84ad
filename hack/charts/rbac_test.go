package charts

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"liken.sh/csicommon/csitest/page"
)

func TestTheRoleIsWhatThePluginCalls(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		all := c.rendered(t, "")
		role := named[*rbacv1.ClusterRole](t, all, c.plugin)
		// A test of the driver compares that with what the plugin asks the API server.
		if want := page.Role(t, filepath.Join(c.docs, "install.md")); !reflect.DeepEqual(role.Rules, want.Rules) {
			t.Errorf("the chart grants\n%+v\nthe driver's documentation\n%+v", role.Rules, want.Rules)
		}
		if role.AggregationRule != nil {
			t.Error("the role takes in others")
		}
		binding := named[*rbacv1.ClusterRoleBinding](t, all, c.plugin)
		if binding.RoleRef.Name != role.Name || len(binding.Subjects) != 1 || binding.Subjects[0].Namespace != c.namespace {
			t.Errorf("the binding is %+v", binding)
		}
	})
}

// With a service account of the user's own, it is that which may do it.
func TestTheBindingFollowsTheServiceAccount(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		for values, want := range map[string]string{
			"":                            c.plugin,
			"serviceAccount: {name: own}": "own",
			"serviceAccount: {create: false, name: own}": "own",
			"serviceAccount: {create: false}":            "default",
			"fullnameOverride: local":                    strings.Replace(c.plugin, c.name, "local", 1),
		} {
			all, name := c.rendered(t, values), c.plugin
			if strings.Contains(values, "fullnameOverride") {
				name = want
			}
			if got := named[*rbacv1.ClusterRoleBinding](t, all, name).Subjects[0].Name; got != want {
				t.Errorf("with %q it is bound to %q, want %q", values, got, want)
			}
		}
	})
}
