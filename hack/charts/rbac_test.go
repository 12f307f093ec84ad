package charts

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// roleInDocs is the ClusterRole of the manifests that are written by hand. A test
// of the driver compares it with what the plugin asks the API server.
func (c chart) roleInDocs(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	manifest := regexp.MustCompile("(?ms)^apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n.*?^(?:---|```)$").
		FindString(readFile(t, c.docs, "install.md"))
	manifest = regexp.MustCompile("(?m)^(---|```)$").ReplaceAllString(manifest, "")
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(manifest), &role); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) == 0 {
		t.Fatal("the documentation has no ClusterRole with rules")
	}
	return role
}

func TestTheRoleIsWhatThePluginCalls(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		all := c.rendered(t, "")
		role := named[*rbacv1.ClusterRole](t, all, c.plugin)
		if want := c.roleInDocs(t); !reflect.DeepEqual(role.Rules, want.Rules) {
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
