package docs

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/hack/manifest"
)

var manifestPattern = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// objects are those of a page's manifests.
func objects(page string) (found []metav1.Object, errs []error) {
	for _, block := range manifestPattern.FindAllStringSubmatch(page, -1) {
		for _, text := range strings.Split(block[1], "\n---\n") {
			o, err := manifest.Decode([]byte(text))
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

func titleOf(o metav1.Object) string {
	return title(reflect.TypeOf(o).Elem().Name(), o.GetNamespace(), o.GetName())
}
