package toolset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPin(t *testing.T) {
	const gomod = `module example.com/wrapper

require k8s.io/kubernetes v1.37.2

require (
	go.etcd.io/etcd/api/v3 v3.7.1 // indirect
	go.etcd.io/etcd/server/v3 v3.7.3 // indirect
)

replace k8s.io/api => k8s.io/api v0.37.2
`
	rows := []struct{ name, module, want string }{
		{"a require of its own line", "k8s.io/kubernetes", "v1.37.2"},
		{"in a block", "go.etcd.io/etcd/server/v3", "v3.7.3"},
		{"replaced and not required", "k8s.io/api", ""},
		{"the beginning of another's name", "go.etcd.io/etcd", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := pin(gomod, row.module)
			if got != row.want || (err == nil) != (row.want != "") {
				t.Fatalf("got %q, %v; want %q", got, err, row.want)
			}
		})
	}
}

// tiny is a set that builds from the standard library alone.
func tiny(t *testing.T, version string) Builder {
	t.Helper()
	modules := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":           "module example.com/tiny\n\ngo 1.26.0\n\n// example.com/pinned\nrequire example.com/pinned " + version + "\n\nreplace example.com/pinned => ./pinned\n",
		"go.sum":           "",
		"v2/main.go":       "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
		"pinned/go.mod":    "module example.com/pinned\n",
		"pinned/pinned.go": "package pinned\n",
	} {
		file := filepath.Join(modules, "tiny", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Builder{Modules: modules, Cache: filepath.Join(t.TempDir(), "cache"), Progress: func(string) {}}
}

func TestEnsureBuildsOncePerVersion(t *testing.T) {
	set := Set{Name: "tiny", Module: "example.com/pinned", Packages: map[string]string{"named": "example.com/tiny/v2"}}
	builder := tiny(t, "v1.0.0")
	said := 0
	builder.Progress = func(string) { said++ }
	if err := os.MkdirAll(filepath.Join(builder.Cache, building+"interrupted"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := builder.Ensure(set)
	if err != nil {
		t.Fatal(err)
	}
	if said == 0 {
		t.Error("a build says nothing")
	}
	if !strings.HasPrefix(filepath.Base(dir), "tiny-v1.0.0-") {
		t.Errorf("built into %s, which does not name the version", dir)
	}
	// A directory whose name is a version is not what Go names a program after.
	if _, err := os.Stat(filepath.Join(dir, "named")); err != nil {
		t.Error(err)
	}
	said = 0
	if again, err := builder.Ensure(set); err != nil || again != dir || said > 0 {
		t.Errorf("the second time: %s, %v, %d lines; want %s in silence", again, err, said, dir)
	}
	left, err := filepath.Glob(filepath.Join(builder.Cache, ".building-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if other, err := tiny(t, "v1.0.1").Dir(set); err != nil || filepath.Base(other) == filepath.Base(dir) {
		t.Errorf("another version has the directory %s, %v", other, err)
	}
}

func TestOldVersionsAreDeleted(t *testing.T) {
	set := Set{Name: "tiny", Module: "example.com/pinned", Packages: map[string]string{"named": "example.com/tiny/v2"}}
	builder := tiny(t, "v1.0.0")
	const old = kept + time.Hour
	rows := []struct {
		name   string
		unused time.Duration
		stays  bool
	}{
		{"tiny-v0.9.0-0123abcd", old, false},
		{"tiny-v1.0.0-rc.1-0123abcd", old, false},
		{"tiny-v0.9.1-0123abcd", time.Hour, true},  // another checkout's
		{"tiny-more-v0.9.0-0123abcd", old, true},   // another set's
		{"tiny-v0.9.0", old, true},                 // nobody's name
		{"my-tiny-v0.9.0-0123abcd", old, true},     // not ours
		{"tiny-v0.9.0-0123abcd.backup", old, true}, // not ours
		{"images", old, true},                      // something else that is kept
	}
	for _, row := range rows {
		dir := filepath.Join(builder.Cache, row.name)
		if err := os.MkdirAll(filepath.Join(dir, "below"), 0o755); err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(-row.unused)
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := builder.Ensure(set)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if _, err := os.Stat(filepath.Join(builder.Cache, row.name)); (err == nil) != row.stays {
			t.Errorf("%s: %v, want it to stay: %t", row.name, err, row.stays)
		}
	}
	// What is used is not old, however long ago it was built.
	long := time.Now().Add(-old)
	if err := os.Chtimes(dir, long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Ensure(set); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("using it leaves no trace: %v", err)
	}
}

func TestFailedBuildLeavesNothingAndShowsWhy(t *testing.T) {
	builder := tiny(t, "v1.0.0")
	set := Set{Name: "tiny", Module: "example.com/pinned", Packages: map[string]string{"named": "example.com/tiny/v2"}}
	broken := filepath.Join(builder.Modules, "tiny/v2/main.go")
	if err := os.WriteFile(broken, []byte("package main\n\nfunc main() { undeclared() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := builder.Ensure(set)
	if err == nil || !strings.Contains(err.Error(), "undefined: undeclared") {
		t.Fatalf("got %v, want the compiler's message", err)
	}
	entries, err := os.ReadDir(builder.Cache)
	if err != nil || len(entries) > 0 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestKubernetesKnowsItsVersion(t *testing.T) {
	flags := strings.Join(kubernetesVersion("v1.37.2"), " ")
	for _, want := range []string{"gitVersion=v1.37.2", "gitMajor=1", "gitMinor=37"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q is missing in %q", want, flags)
		}
	}
}
