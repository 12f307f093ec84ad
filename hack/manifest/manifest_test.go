package manifest

import "testing"

// A decoder that takes everything would make the tests that use it worthless.
func TestDecodingIsStrict(t *testing.T) {
	for name, document := range map[string]string{
		"an unknown field": "apiVersion: v1\nkind: Pod\nspec:\n  hostNetwrok: true\n",
		"a field twice":    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n",
		"an unknown kind":  "apiVersion: v1\nkind: Pode\n",
		"no kind":          "metadata: {name: a}\n",
		"not YAML":         "apiVersion: v1\n\tkind: Pod\n",
		"an alert's typing error": "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n" +
			"spec:\n  groups: [{name: a, rules: [{alert: b, exp: up}]}]\n",
	} {
		if _, err := Decode([]byte(document)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	pod, err := Decode([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"))
	if err != nil || pod.GetName() != "a" {
		t.Errorf("got %v, %v", pod, err)
	}
}
