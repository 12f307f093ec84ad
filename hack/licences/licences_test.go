package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheDriversLinkWhatIsAllowed(t *testing.T) {
	for driver, least := range map[string]int{"pernode": 40, "gitvolume": 45} {
		modules, err := linked("../../"+driver, "./cmd/"+driver)
		if err != nil {
			t.Fatal(err)
		}
		if len(modules) < least {
			t.Errorf("%s links only %d modules", driver, len(modules))
		}
		if err := check(modules); err != nil {
			t.Errorf("%s: %v", driver, err)
		}
		if !slices.ContainsFunc(modules, func(m Module) bool { return m.Path == "std" && strings.HasPrefix(m.Version, "go1.") }) {
			t.Errorf("the standard library is not among what %s links", driver)
		}
		if slices.ContainsFunc(modules, func(m Module) bool { return strings.HasPrefix(m.Path, "liken.sh/") }) {
			t.Errorf("a module of this repository is among what %s links of others", driver)
		}
		var all strings.Builder
		if err := texts(modules, &all); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"std go1.", "Copyright 2009 The Go Authors", "google.golang.org/grpc v", "Apache License"} {
			if !strings.Contains(all.String(), want) {
				t.Errorf("the texts of %s lack %q", driver, want)
			}
		}
	}
}

func licence(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRecognise(t *testing.T) {
	apache := licence(t, "../../LICENSE")
	for name, row := range map[string]struct {
		text []byte
		want []string
	}{
		"a whole one":                    {apache, []string{"Apache-2.0"}},
		"one with conditions of its own": {append(slices.Clone(apache), strings.Repeat("Nobody may run this on a Monday without paying for it. ", 200)...), []string{"Apache-2.0", unknown}},
		"none":                           {[]byte("All rights reserved."), []string{unknown}},
		"its name alone":                 {[]byte("See https://www.apache.org/licenses/LICENSE-2.0"), []string{unknown}},
	} {
		if got := recognise(row.text); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestCheckNamesTheModule(t *testing.T) {
	for name, row := range map[string]struct {
		licences []string
		says     string
	}{
		"allowed":          {[]string{"MIT", "BSD-3-Clause"}, ""},
		"one that is not":  {[]string{"MIT", "AGPL-3.0"}, "example.com/m v1.0.0 is under AGPL-3.0"},
		"one not known":    {[]string{unknown}, "is under " + unknown},
		"none to be found": {nil, "has no licence"},
	} {
		err := check([]Module{{Path: "example.com/m", Version: "v1.0.0", Licences: row.licences}})
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", name, err, row.says)
		}
	}
}

// A package may be under another licence than the rest of its module.
func TestLicencesAboveAPackageCount(t *testing.T) {
	root := t.TempDir()
	below := filepath.Join(root, "third_party", "forked")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"LICENSE", "NOTICE", "license.go", "third_party/forked/COPYING", "third_party/LICENSES.json"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := Module{dir: root}
	if err := m.add(below); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(below, "COPYING"), filepath.Join(root, "LICENSE"), filepath.Join(root, "NOTICE")}
	if !slices.Equal(m.files, want) {
		t.Errorf("the files are %q, want %q", m.files, want)
	}
}
