package docs

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// object is any of Kubernetes.
type object interface {
	GetName() string
	GetNamespace() string
}

// emptyObject is one of a manifest's kind, nil for a kind that no page has.
func emptyObject(apiVersion, kind string) object {
	switch apiVersion + " " + kind {
	case "v1 Namespace":
		return &corev1.Namespace{}
	case "v1 PersistentVolume":
		return &corev1.PersistentVolume{}
	case "v1 PersistentVolumeClaim":
		return &corev1.PersistentVolumeClaim{}
	case "v1 Pod":
		return &corev1.Pod{}
	case "v1 Service":
		return &corev1.Service{}
	case "v1 ServiceAccount":
		return &corev1.ServiceAccount{}
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "apps/v1 StatefulSet":
		return &appsv1.StatefulSet{}
	case "policy/v1 PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return &rbacv1.ClusterRole{}
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "storage.k8s.io/v1 CSIDriver":
		return &storagev1.CSIDriver{}
	case "storage.k8s.io/v1 StorageClass":
		return &storagev1.StorageClass{}
	}
	return nil
}

func decode(manifest string) (object, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(manifest), &head); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, manifest)
	}
	found := emptyObject(head.APIVersion, head.Kind)
	if found == nil {
		return nil, fmt.Errorf("%s %s is no kind that is known here", head.APIVersion, head.Kind)
	}
	// Strict: a field that Kubernetes does not know is a typing error.
	if err := yaml.UnmarshalStrict([]byte(manifest), found); err != nil {
		return nil, fmt.Errorf("%s: %w", head.Kind, err)
	}
	return found, nil
}

var manifestPattern = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// objects are those of a page's manifests.
func objects(text string) (found []object, errs []error) {
	for _, block := range manifestPattern.FindAllStringSubmatch(text, -1) {
		for _, manifest := range strings.Split(block[1], "\n---\n") {
			o, err := decode(manifest)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			found = append(found, o)
		}
	}
	return found, errs
}

func TestManifestsAreValidAndWhole(t *testing.T) {
	checked := 0
	for path, text := range pages(t) {
		found, errs := objects(text)
		checked += len(found)
		for _, err := range errs {
			t.Errorf("%s: %v", path, err)
		}
		for _, wrong := range missing(found) {
			t.Errorf("%s: %s", path, wrong)
		}
	}
	if checked == 0 {
		t.Error("no manifest was found")
	}
}

func title(kind, namespace, name string) string {
	return strings.ReplaceAll(kind+" "+namespace+"/"+name, " /", " ")
}

func titleOf(o object) string {
	return title(reflect.TypeOf(o).Elem().Name(), o.GetNamespace(), o.GetName())
}
