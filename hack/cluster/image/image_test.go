package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func unpack(t *testing.T, archive []byte) (map[string][]byte, map[string]*tar.Header) {
	t.Helper()
	content, headers := map[string][]byte{}, map[string]*tar.Header{}
	reader := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return content, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		content[header.Name], headers[header.Name] = bytes, header
	}
}

// Every digest in the archive has to be that of the blob it names: containerd
// checks each.
func TestArchiveHoldsTogether(t *testing.T) {
	layer := filepath.Join(t.TempDir(), "layer.tar")
	if err := os.WriteFile(layer, []byte("a layer"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	image := Image{Names: []string{"liken.sh/test:1"}, Layers: []string{layer}, Config: Config{Entrypoint: []string{"/pause"}}}
	if err := Write(&out, image); err != nil {
		t.Fatal(err)
	}
	files, _ := unpack(t, out.Bytes())
	blob := func(d descriptor) []byte {
		t.Helper()
		content, found := files["blobs/sha256/"+d.Digest[len("sha256:"):]]
		if !found || int64(len(content)) != d.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(content)) != d.Digest {
			t.Fatalf("the blob of %+v is wrong or missing", d)
		}
		return content
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index %s: %v", files["index.json"], err)
	}
	if name := index.Manifests[0].Annotations["io.containerd.image.name"]; name != "liken.sh/test:1" {
		t.Errorf("the image is called %q", name)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	if err := json.Unmarshal(blob(index.Manifests[0]), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Layers) != 1 || string(blob(manifest.Layers[0])) != "a layer" {
		t.Errorf("layers %+v", manifest.Layers)
	}
	var config struct {
		Config Config
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(blob(manifest.Config), &config); err != nil {
		t.Fatal(err)
	}
	// A layer that is not compressed is its own difference.
	if config.Config.Entrypoint[0] != "/pause" || config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest {
		t.Errorf("configuration %+v", config)
	}
}

func TestLayer(t *testing.T) {
	tree := t.TempDir()
	if err := os.MkdirAll(filepath.Join(tree, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "bin/go"), []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("go", filepath.Join(tree, "bin/golang")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := WriteLayer(&out, []Entry{
		{Path: "/tmp", Mode: 0o777 | fs.ModeSticky},
		{Path: "/bin/sh", Link: "busybox"},
		{Path: "/etc/passwd", Content: "root"},
		{Path: "/usr/local/go", From: tree},
	})
	if err != nil {
		t.Fatal(err)
	}
	content, headers := unpack(t, out.Bytes())
	if h := headers["tmp/"]; h == nil || h.Typeflag != tar.TypeDir || h.Mode != 0o1777 {
		t.Errorf("/tmp is %+v", h)
	}
	if h := headers["bin/sh"]; h == nil || h.Linkname != "busybox" {
		t.Errorf("/bin/sh is %+v", h)
	}
	if string(content["etc/passwd"]) != "root" || headers["etc/passwd"].Mode != 0o644 {
		t.Errorf("/etc/passwd is %+v", headers["etc/passwd"])
	}
	if h := headers["usr/local/go/bin/go"]; h == nil || h.Mode != 0o755 || h.Uid != 0 || string(content[h.Name]) != "program" {
		t.Errorf("a program of a tree is %+v", h)
	}
	if h := headers["usr/local/go/bin/golang"]; h == nil || h.Linkname != "go" {
		t.Errorf("a symlink of a tree is %+v", h)
	}
}

func TestIsStatic(t *testing.T) {
	if err := isStatic("/bin/ls"); err == nil || !strings.Contains(err.Error(), "busybox-static") {
		t.Errorf("a program with libraries: got %v, want the package to install", err)
	}
	plain := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(plain, []byte("#!/bin/sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := isStatic(plain); err == nil {
		t.Error("a script is taken for a program")
	}
}

func TestAnImageOfOneProgram(t *testing.T) {
	s := stock(t)
	program := filepath.Join(t.TempDir(), "csi-tool")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	old, err := s.Program("registry.example.com/sidecars/csi-tool:v1.0.0", program)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := s.Program("registry.example.com/sidecars/csi-tool:v1.0.1", program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the archive of an old version: %v", err)
	}
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"registry.example.com/sidecars/csi-tool:v1.0.1", `"Entrypoint":["/csi-tool"]`, "program"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the archive has no %s", want)
		}
	}
	before, err := os.Stat(archive)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Program("registry.example.com/sidecars/csi-tool:v1.0.1", program); err != nil || again != archive {
		t.Errorf("the second time: %s, %v", again, err)
	}
	if after, err := os.Stat(archive); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("it is made again: %v", err)
	}
}
