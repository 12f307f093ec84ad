package charts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// emptyOf is an empty object of a manifest's kind, nil for one the chart has not.
func emptyOf(apiVersion, kind string) metav1.Object {
	switch apiVersion + " " + kind {
	case "v1 ConfigMap":
		return &corev1.ConfigMap{}
	case "v1 PersistentVolume":
		return &corev1.PersistentVolume{}
	case "v1 Pod":
		return &corev1.Pod{}
	case "v1 ServiceAccount":
		return &corev1.ServiceAccount{}
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "monitoring.coreos.com/v1 PodMonitor":
		return &monitoringv1.PodMonitor{}
	case "monitoring.coreos.com/v1 PrometheusRule":
		return &monitoringv1.PrometheusRule{}
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

// decode reads the documents of a rendered chart into the API's types, strictly:
// a field that Kubernetes does not know, or one given twice, is an error.
func decode(rendered string) ([]metav1.Object, error) {
	var objects []metav1.Object
	documents := yamlutil.NewYAMLReader(bufio.NewReader(strings.NewReader(rendered)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		var head metav1.TypeMeta
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		object := emptyOf(head.APIVersion, head.Kind)
		if object == nil {
			return nil, fmt.Errorf("%q %q is no kind that is known here, in\n%s", head.APIVersion, head.Kind, document)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return nil, fmt.Errorf("%s: %w", head.Kind, err)
		}
		objects = append(objects, object)
	}
}

func objects(t *testing.T, values string) []metav1.Object {
	t.Helper()
	all, err := decode(mustTemplate(t, values))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// find returns those of a type.
func find[T metav1.Object](all []metav1.Object) []T {
	var found []T
	for _, object := range all {
		if o, is := object.(T); is {
			found = append(found, o)
		}
	}
	return found
}

// only returns the one object of a type.
func only[T metav1.Object](t *testing.T, all []metav1.Object) T {
	t.Helper()
	found := find[T](all)
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T are rendered, want 1", len(found), *new(T))
	}
	return found[0]
}

func TestEveryObjectIsValid(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		kinds  int
	}{
		"default":       {"", 8},
		"full":          {full(t), 7},
		"everything on": {full(t) + "\nstorageClass: {create: true}\nrbac: {create: true}\nserviceAccount: {create: true}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := objects(t, test.values)
			for _, object := range all {
				wantLabels(t, object)
			}
			if test.kinds != 0 && len(all) != test.kinds {
				t.Errorf("%d objects are rendered, want %d", len(all), test.kinds)
			}
		})
	}
}

// wantLabels checks the labels by which a person finds what belongs to a release.
func wantLabels(t *testing.T, object metav1.Object) {
	t.Helper()
	labels := object.GetLabels()
	if labels["app.kubernetes.io/managed-by"] != "Helm" || labels["app.kubernetes.io/name"] == "" {
		t.Errorf("%T %s has the labels %v", object, object.GetName(), labels)
	}
	if _, isPod := object.(*corev1.Pod); !isPod && labels["app.kubernetes.io/instance"] != release {
		t.Errorf("%T %s has the labels %v", object, object.GetName(), labels)
	}
}

// A decoder that takes everything would make the tests above worthless.
func TestDecodingIsStrict(t *testing.T) {
	for name, manifest := range map[string]string{
		"an unknown field": "apiVersion: v1\nkind: Pod\nspec:\n  hostNetwrok: true\n",
		"a field twice":    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n",
		"an unknown kind":  "apiVersion: v1\nkind: Pode\n",
		"an alert's typing error": "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n" +
			"spec:\n  groups: [{name: a, rules: [{alert: b, exp: up}]}]\n",
	} {
		if _, err := decode(manifest); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := decode("apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n"); err != nil {
		t.Error(err)
	}
}
