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
	return RoleOf(t, file, "ClusterRole")
}

// RoleOf is the first role of a kind, Role or ClusterRole, that a page has as a manifest. A
// Role has no field that a ClusterRole lacks.
func RoleOf(t testing.TB, file, kind string) rbacv1.ClusterRole {
	t.Helper()
	manifest := regexp.MustCompile("(?ms)^apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\n.*?^(?:---|```)$").FindString(Read(t, file))
	manifest = regexp.MustCompile("(?m)^(---|```)$").ReplaceAllString(manifest, "")
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(manifest), &role); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) == 0 {
		t.Fatalf("%s has no %s with rules", file, kind)
	}
	return role
}
