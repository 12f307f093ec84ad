package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var testImage = reference{"ghcr.io", "somebody/pernode", "sha256:" + strings.Repeat("0f", 32)}

// Of both charts as they are: a release must name its image in each, and nothing else.
func TestNameImage(t *testing.T) {
	for _, driver := range drivers() {
		chart := filepath.Join(t.TempDir(), driver)
		if err := os.CopyFS(chart, os.DirFS("../../charts/"+driver)); err != nil {
			t.Fatal(err)
		}
		before := values(t, chart)
		if err := nameImage(chart, testImage); err != nil {
			t.Fatal(err)
		}
		after := values(t, chart)
		image := after["image"].(map[string]any)
		if image["registry"] != "ghcr.io" || image["repository"] != "somebody/pernode" || image["digest"] != testImage.digest {
			t.Errorf("%s runs %v", driver, image)
		}
		for name, value := range before["image"].(map[string]any) {
			if _, named := testImage.values()[name]; !named && image[name] != value {
				t.Errorf("%s: image.%s became %v", driver, name, image[name])
			}
		}
		delete(before, "image")
		delete(after, "image")
		if text(t, before) != text(t, after) {
			t.Errorf("%s: more than the image was changed", driver)
		}
		page, err := os.ReadFile(filepath.Join(chart, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []string{"| `image.registry` | `\"ghcr.io\"` |", "| `image.digest` | `\"" + testImage.digest + "\"` |"} {
			if strings.Count(string(page), row) != 1 {
				t.Errorf("the page of %s has not the row %s", driver, row)
			}
		}
	}
}

func values(t *testing.T, chart string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]any
	if err := yaml.UnmarshalStrict(content, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func text(t *testing.T, value any) string {
	t.Helper()
	content, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestSameObjects(t *testing.T) {
	p := publication{tag: tag{"pernode", "v1.2.3"}}
	const from = "helm.sh/chart: pernode-0.1.0\napp.kubernetes.io/version: \"devel\"\n"
	const released = "helm.sh/chart: pernode-1.2.3\napp.kubernetes.io/version: \"v1.2.3\"\n"
	runs := "image: " + testImage.String() + "\n"
	for name, row := range map[string]struct{ got, says string }{
		"the same":              {released + runs, ""},
		"another image":         {released + "image: ghcr.io/somebody/pernode:v1.2.3\n", "does not run"},
		"another label":         {from + runs, "another line 1"},
		"an object more":        {released + runs + "kind: Pod\n", "another line 4"},
		"an object less":        {runs[:len(runs)-1], "another line 1"},
		"another object's line": {released + runs[:len(runs)-1] + "0\n", "another line 3"},
	} {
		err := p.sameObjects(from+runs, row.got, testImage)
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", name, err, row.says)
		}
	}
}

func TestParseReference(t *testing.T) {
	if got, err := parseReference(testImage.String()); err != nil || got != testImage {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "ghcr.io/somebody/pernode:v1.2.3", "pernode@sha256:00"} {
		if _, err := parseReference(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
