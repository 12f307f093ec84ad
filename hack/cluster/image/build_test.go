package image

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// base is an archive of an image, of all names that the tests ask for, that has one
// file.
func base(t *testing.T, stock Stock, name, content string) string {
	t.Helper()
	archive, err := stock.once(name, func() (Image, error) {
		layer, err := stock.layer(name, []Entry{{Path: "/content", Content: content}})
		return Image{Names: append(debianNames(), GolangName), Layers: []string{layer}}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func stock(t *testing.T) Stock {
	return Stock{Archives: filepath.Join(t.TempDir(), "archives"), Work: t.TempDir(), Say: func(string) {}}
}

// An old toolchain takes a gigabyte, among the archives and in buildah's storage.
func TestBuildFromTheLatestBaseAlone(t *testing.T) {
	if _, err := exec.LookPath("buildah"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs buildah, which only those need who build images, and root")
	}
	s := stock(t)
	builder := Builder{Storage: filepath.Join(t.TempDir(), "storage"), Work: s.Work}
	images := func() []string {
		t.Helper()
		names, err := builder.run("images", "--noheading", "--format", "{{.Name}}:{{.Tag}}")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(names)
	}
	archive := base(t, s, "golang-go1.26.0", "old")
	if err := builder.Base(archive, DebianName); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"golang-go1.26.0", "golang-go1.26.1", "golang-go1.26.1"} {
		if err := builder.Base(base(t, s, name, "of "+name), GolangName); err != nil {
			t.Fatal(err)
		}
	}
	// Of each base the name and the mark.
	if names := images(); len(names) != 4 {
		t.Errorf("the storage has %q, want 4", names)
	}
	file := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(file, []byte("FROM golang:1.26-bookworm AS build\nFROM scratch\nCOPY --from=build /content /content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(t.TempDir(), "built.tar")
	if err := builder.Build(Dockerfile{Path: file, Context: filepath.Dir(file), Name: "registry.example.com/built:devel"}, built); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	blobs, _ := unpack(t, content)
	for _, blob := range blobs {
		// buildah compresses layers.
		if layer, err := gzip.NewReader(bytes.NewReader(blob)); err == nil {
			blob, _ = io.ReadAll(layer)
			files, _ := unpack(t, blob)
			if got := string(files["content"]); got != "of golang-go1.26.1" {
				t.Errorf("it was built from %q", got)
			}
			return
		}
	}
	t.Errorf("no layer is in %d blobs", len(blobs))
}

func TestOnlyTheLatestArchiveStays(t *testing.T) {
	s := stock(t)
	for _, name := range []string{"golang-go1.26.0", "golang-go1.26.1", "debian"} {
		base(t, s, name, name)
	}
	if err := s.only("golang-*", filepath.Join(s.Archives, "golang-go1.26.1.tar")); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(s.Archives, "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != "debian.tar" || filepath.Base(left[1]) != "golang-go1.26.1.tar" {
		t.Errorf("left are %q, %v", left, err)
	}
}
