package main

import (
	"archive/tar"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/hack/release/bom"
)

// A registry that does not answer must not be taken for one that has nothing: what is
// published would be replaced.
func TestNotPublished(t *testing.T) {
	for name, row := range map[string]struct{ crane, says string }{
		"nothing of that name":   {"echo 'MANIFEST_UNKNOWN: Unknown manifest' >&2; exit 1", ""},
		"denied, as what is not": {"echo 'DENIED: requested access' >&2; exit 1", ""},
		"no answer":              {"echo 'dial tcp: i/o timeout' >&2; exit 1", "find out whether pernode/v1.2.3 is published"},
		"there":                  {"echo sha256:00", "is published already"},
	} {
		crane := filepath.Join(t.TempDir(), "crane")
		if err := os.WriteFile(crane, []byte("#!/bin/sh\n"+row.crane+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		p := publication{tag: tag{"pernode", "v1.2.3"}, registry: "ghcr.io/somebody", signer: signer{tools: tools{crane: crane}}}
		err := p.notPublished()
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", name, err, row.says)
		}
	}
}

func TestSignsWithTheWorkflowThatPublishes(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_SERVER_URL", "https://github.com")
	t.Setenv("GITHUB_REPOSITORY", "somebody/drivers")
	t.Setenv("GITHUB_REF", "refs/tags/pernode/v1.2.3")
	s, err := workflowIdentity(tools{})
	if want := "https://github.com/somebody/drivers/.github/workflows/release.yaml@refs/tags/pernode/v1.2.3"; err != nil || s.identity != want {
		t.Errorf("%q, %v, want %q", s.identity, err, want)
	}
	if _, err := os.Stat(filepath.Join("../..", releaseWorkflow)); err != nil {
		t.Error(err)
	}
	p := publication{tag: tag{"pernode", "v1.2.3"}, commit: "abc", work: t.TempDir(), signer: s}
	file, err := p.provenance()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		BuildDefinition struct {
			ResolvedDependencies []struct {
				URI    string
				Digest map[string]string
			}
		}
		RunDetails struct{ Builder struct{ ID string } }
	}
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	source := found.BuildDefinition.ResolvedDependencies[0]
	if source.URI != "git+https://github.com/somebody/drivers@refs/tags/pernode/v1.2.3" || source.Digest["gitCommit"] != "abc" || found.RunDetails.Builder.ID != s.identity {
		t.Errorf("the provenance is\n%s", text)
	}
	t.Setenv("GITHUB_ACTIONS", "")
	if _, err := workflowIdentity(tools{}); err == nil {
		t.Error("what is no workflow signs as one")
	}
}

func TestReadsAnImage(t *testing.T) {
	const licences = "usr/share/doc/gitvolume/licences"
	whole := map[string]string{
		"usr/local/bin/gitvolume": "program", "var/lib/dpkg/status": "Package: git\n", licences: "google.golang.org/grpc v1, LICENSE\n",
		"usr/share/doc/git/copyright": "Format: x\n", "usr/share/doc/git/README": "x", "etc/passwd": "x",
	}
	image := bom.Image{Copyrights: make(map[string][]byte)}
	if err := read(imageOf(t, whole), "gitvolume", &image); err != nil {
		t.Fatal(err)
	}
	if string(image.Program) != "program" || string(image.Status) != "Package: git\n" || len(image.Copyrights) != 1 || image.Copyrights["git"] == nil {
		t.Errorf("read %+v", image)
	}
	for without, says := range map[string]string{"usr/local/bin/gitvolume": "no program gitvolume", licences: "licences"} {
		files := make(map[string]string)
		for name, text := range whole {
			if name != without {
				files[name] = text
			}
		}
		if err := read(imageOf(t, files), "gitvolume", &bom.Image{Copyrights: make(map[string][]byte)}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("without %s: %v", without, err)
		}
	}
}

func imageOf(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	for name, text := range files {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
