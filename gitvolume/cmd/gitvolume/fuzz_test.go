package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file of any bytes is a class with a name and parameters that are texts, or an error of
// one line that says what is wrong, in bounded time.
func FuzzClassFile(f *testing.F) {
	head := "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata:\n  name: c\ndriverName: git.liken.sh\n"
	for _, text := range []string{
		head + "parameters:\n  push.quiesce: 30s\n", head + "parameters:\n  armed: true\n", head + "---\n", head + "parameters: [a]\n", "", "null", "[]", "a: &a [*a]",
		head + "parameters: {a: 1, a: 2}\n", head + "parameters:\n  a: ~\n", "\xff\xfe", `{"kind":"VolumeAttributesClass"}`, head + "spec: x\n",
		"a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := filepath.Join(t.TempDir(), "class")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		class, err := parseClass(file)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%d bytes took %s", len(content), took)
		}
		switch {
		case err != nil && (err.Error() == "" || strings.ContainsAny(err.Error(), "\x00\x1b")):
			t.Errorf("%q: %q", content, err)
		case err == nil && (class.Name == "" || len(class.Parameters) == 0):
			t.Errorf("%q is read as %+v", content, class)
		}
	})
}
