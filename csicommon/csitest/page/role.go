package page

import (
	"regexp"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Role is the ClusterRole that a page has as a manifest.
func Role(t testing.TB, file string) rbacv1.ClusterRole {
	t.Helper()
	manifest := regexp.MustCompile("(?ms)^apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n.*?^(?:---|```)$").FindString(Read(t, file))
	manifest = regexp.MustCompile("(?m)^(---|```)$").ReplaceAllString(manifest, "")
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(manifest), &role); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) == 0 {
		t.Fatalf("%s has no ClusterRole with rules", file)
	}
	return role
}
