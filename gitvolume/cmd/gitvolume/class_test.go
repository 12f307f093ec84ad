package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClassFiles(t *testing.T) {
	for name, row := range map[string]struct {
		text  string
		wrong string // What the error says; empty: it is usable.
	}{
		"as it is in Kubernetes":       {fastClass, ""},
		"of an older API":              {strings.Replace(fastClass, "/v1", "/v1beta1", 1), ""},
		"behind a comment":             {"# chart/class.yaml\n---\n" + fastClass + "---\n# nothing\n", ""},
		"with Windows lines":           {strings.ReplaceAll(fastClass, "\n", "\r\n"), ""},
		"one that pauses":              {strings.Replace(fastClass, "push.quiesce: 5s", `armed: "false"`, 1), ""},
		"two of them":                  {fastClass + "---\n" + fastClass, "more than one document"},
		"empty":                        {"", "it is empty: write one of kind VolumeAttributesClass"},
		"a text":                       {"hello", "it has no fields"},
		"a list":                       {"- 1", "it has no fields"},
		"nothing but a comment":        {"# later\n", "it is empty"},
		"no kind":                      {strings.Replace(fastClass, "kind: VolumeAttributesClass", "", 1), "kind is missing: write"},
		"no API":                       {strings.Replace(fastClass, "apiVersion: storage.k8s.io/v1", "", 1), "apiVersion is missing: write"},
		"of an API that is not there":  {strings.Replace(fastClass, "/v1", "/v7", 1), `of "storage.k8s.io/v7": write`},
		"true without quotes":          {strings.Replace(fastClass, "push.quiesce: 5s", "armed: true", 1), `parameter armed is true without quotes, which is no text: write armed: "true"`},
		"a number without quotes":      {strings.Replace(fastClass, "push.quiesce: 5s", "push.quiesce: 10", 1), `write push.quiesce: "10"`},
		"a parameter without a value":  {strings.Replace(fastClass, "push.quiesce: 5s", "armed: ", 1), "parameter armed has no value"},
		"a list as a parameter":        {strings.Replace(fastClass, "push.quiesce: 5s", "ignore: [a]", 1), "parameter ignore has to be a text"},
		"a list of parameters":         {strings.Replace(fastClass, "{push.quiesce: 5s}", "[push.quiesce]", 1), "parameters have to be names and values"},
		"a name that is a number":      {strings.Replace(fastClass, "name: fast", "name: 1", 1), "name is a number, which does not go there"},
		"another kind":                 {strings.Replace(fastClass, "VolumeAttributesClass", "StorageClass", 1), `"StorageClass"`},
		"another group":                {strings.Replace(fastClass, "storage.k8s.io/", "", 1), `of "v1"`},
		"a field of another kind":      {fastClass + "spec: {}\n", "spec"},
		"a field twice":                {fastClass + "driverName: x\n", "driverName"},
		"a value that is no text":      {strings.Replace(fastClass, "push.quiesce: 5s", "metadata: true", 1), `metadata: "true"`},
		"no name":                      {strings.Replace(fastClass, "name: fast", "", 1), "metadata.name"},
		"no parameters":                {strings.Replace(fastClass, "push.quiesce: 5s", "", 1), "at least one"},
		"an unknown parameter":         {strings.Replace(fastClass, "push.quiesce", "push.quiet", 1), `"push.quiet"`},
		"more than a class needs":      {strings.Repeat("#", longestSecret+1), "more than"},
		"another driver's, as it says": {strings.Replace(fastClass, "git.liken.sh", "git.example", 1), "another driver"},
	} {
		file := filepath.Join(t.TempDir(), "class.yaml")
		if err := os.WriteFile(file, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		arming, err := readClass(file)
		switch {
		case row.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case row.wrong == "" && arming.Class != "fast":
			t.Errorf("%s: the class is %q", name, arming.Class)
		case row.wrong == "" && arming.Unarmed == nil && arming.Policy.Quiesce != 5*time.Second:
			t.Errorf("%s: the policy is %+v", name, arming.Policy)
		case row.wrong == "":
		case err == nil || arming.Unarmed == nil:
			t.Errorf("%s: no error, and unarmed by %v", name, arming.Unarmed)
		case strings.Contains(err.Error(), "Go "):
			t.Errorf("%s: it speaks of Go: %v", name, err)
		case !strings.Contains(err.Error(), row.wrong) || !strings.Contains(err.Error(), file):
			t.Errorf("%s: %v, which lacks %q or the file", name, err, row.wrong)
		case arming.Class == "" || arming.Policy.Quiesce == 0:
			t.Errorf("%s: nothing counts while it is wrong: %+v", name, arming)
		}
	}
}
