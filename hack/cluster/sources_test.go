package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSum(t *testing.T) {
	d := driver{name: "pernode", dockerfile: "pernode/Dockerfile", image: "pernode:devel"}
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"pernode/Dockerfile", ".dockerignore", "LICENSE", "csicommon/a.go", "pernode/a.go", "hack/licences/a.go", "base"} {
		write(name, name)
	}
	sum := func(arguments ...string) string {
		t.Helper()
		text, err := d.sum(root, arguments, filepath.Join(root, "base"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}

	first := sum("VERSION=1")
	write("gitvolume/a.go", "of another driver")
	if sum("VERSION=1") != first {
		t.Error("what is no part of the image made another sum")
	}
	archive := filepath.Join(root, "pernode.tar")
	is := func(want bool, text string) {
		t.Helper()
		if got, err := isFrom(archive, text); err != nil || got != want {
			t.Errorf("the archive is from that: %v, %v, want %v", got, err, want)
		}
	}
	is(false, first)
	write("pernode.tar", "")
	is(false, first)
	write("pernode.tar.from", first)
	is(true, first)

	is(false, sum("VERSION=2"))
	for _, name := range []string{"pernode/Dockerfile", "csicommon/deep/b.go", "pernode/a.go", "hack/licences/a.go", "LICENSE", "base"} {
		before := sum("VERSION=1")
		write(name, "changed "+name)
		if sum("VERSION=1") == before {
			t.Errorf("a change of %s makes no other sum", name)
		}
	}
	is(false, sum("VERSION=1"))
}
