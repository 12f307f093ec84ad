package charts

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"

	"liken.sh/hack/manifest"
)

// decode reads the documents of a rendered chart.
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
		object, err := manifest.Decode(document)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

func (c chart) rendered(t *testing.T, values string) []metav1.Object {
	t.Helper()
	all, err := decode(c.mustTemplate(t, values))
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

// named returns the one object of a type and name, wherever it is.
func named[T metav1.Object](t *testing.T, all []metav1.Object, name string) T {
	t.Helper()
	var found []metav1.Object
	for _, object := range find[T](all) {
		if object.GetName() == name {
			found = append(found, object)
		}
	}
	return only[T](t, found)
}

func TestEveryObjectIsValid(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		for name, test := range map[string]struct {
			values string
			kinds  int
		}{
			"default":       {"", c.objects},
			"full":          {c.full(t), c.fullObjects},
			"everything on": {c.full(t) + "\nrbac: {create: true}\nserviceAccount: {create: true}\n" + c.others, 0},
		} {
			all := c.rendered(t, test.values)
			for _, object := range all {
				c.wantLabels(t, object)
			}
			if test.kinds != 0 && len(all) != test.kinds {
				t.Errorf("%s: %d objects are rendered, want %d", name, len(all), test.kinds)
			}
		}
	})
}

// wantLabels checks the labels by which a person finds what belongs to a release.
func (c chart) wantLabels(t *testing.T, object metav1.Object) {
	t.Helper()
	labels := object.GetLabels()
	if labels["app.kubernetes.io/managed-by"] != "Helm" || labels["app.kubernetes.io/name"] == "" {
		t.Errorf("%T %s has the labels %v", object, object.GetName(), labels)
	}
	if _, isPod := object.(*corev1.Pod); !isPod && labels["app.kubernetes.io/instance"] != c.name {
		t.Errorf("%T %s has the labels %v", object, object.GetName(), labels)
	}
}
