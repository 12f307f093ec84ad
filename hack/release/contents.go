package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"liken.sh/hack/release/bom"
)

// writeList makes the list of what is in an image that was pushed, from the image itself.
func (p publication) writeList(image reference, architecture string) (string, error) {
	exported := filepath.Join(p.work, "root-"+architecture+".tar")
	if _, err := p.run(p.crane, "export", image.String(), exported); err != nil {
		return "", err
	}
	subject := bom.Image{
		Name: image.host + "/" + image.path, Version: p.version, Architecture: architecture, Digest: image.digest,
		Made: p.committed, Copyrights: make(map[string][]byte),
	}
	if err := read(exported, p.driver, &subject); err != nil {
		return "", fmt.Errorf("read the image for %s: %w", architecture, err)
	}
	var err error
	if subject.Licences, err = p.licences(architecture); err != nil {
		return "", err
	}
	list, err := bom.Write(subject)
	if err != nil {
		return "", err
	}
	say("in the image for %s: %d modules, %d packages of Debian", architecture,
		bytes.Count(list, []byte(`"purl": "pkg:golang/`)), bytes.Count(list, []byte(`"purl": "pkg:deb/`)))
	file := filepath.Join(p.output, fmt.Sprintf("%s-%s-%s.cdx.json", p.driver, p.version, architecture))
	if err := os.WriteFile(file, list, 0o644); err != nil {
		return "", fmt.Errorf("write what is in the image: %w", err)
	}
	return file, nil
}

// read takes from an image's files what the list is made of. It fails where the texts of
// the licences are missing, which an image must not be given away without.
func read(exported, driver string, to *bom.Image) error {
	file, err := os.Open(exported)
	if err != nil {
		return err
	}
	defer file.Close()
	licensed := false
	for files := tar.NewReader(file); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(header.Name, "/")
		package_, isCopyright := copyrightOf(name)
		var into func([]byte)
		switch {
		case name == driver || name == "usr/local/bin/"+driver:
			into = func(content []byte) { to.Program = content }
		case name == "var/lib/dpkg/status":
			into = func(content []byte) { to.Status = content }
		case name == "usr/share/doc/"+driver+"/licences":
			into = func(content []byte) { licensed = bytes.Contains(content, []byte("google.golang.org/grpc ")) }
		case isCopyright && header.Typeflag == tar.TypeReg:
			into = func(content []byte) { to.Copyrights[package_] = content }
		default:
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		into(content)
	}
	if to.Program == nil {
		return fmt.Errorf("there is no program %s in it", driver)
	}
	if !licensed {
		return fmt.Errorf("the licences of what is linked are not in it: want /usr/share/doc/%s/licences", driver)
	}
	return nil
}

// copyrightOf is the package whose copyright file this is.
func copyrightOf(name string) (string, bool) {
	inDoc, found := strings.CutPrefix(name, "usr/share/doc/")
	if !found {
		return "", false
	}
	return strings.CutSuffix(inDoc, "/copyright")
}

// licences are those of each module that the driver links.
func (p publication) licences(architecture string) (map[string][]string, error) {
	cgo := "1"
	if p.driver == "pernode" {
		cgo = "0"
	}
	program := filepath.Join(p.work, "licences")
	build := command{dir: filepath.Join(p.root, "hack", "licences"), env: []string{"GOWORK=off"}}
	if _, err := build.run("go", "build", "-o", program, "."); err != nil {
		return nil, err
	}
	text, err := command{dir: p.root, env: []string{"GOARCH=" + architecture, "CGO_ENABLED=" + cgo}}.
		run(program, "list", filepath.Join(p.root, p.driver), "./cmd/"+p.driver)
	if err != nil {
		return nil, err
	}
	var modules []struct {
		Path     string
		Licences []string
	}
	if err := json.Unmarshal([]byte(text), &modules); err != nil {
		return nil, fmt.Errorf("read the licences: %w", err)
	}
	found := make(map[string][]string)
	for _, m := range modules {
		found[m.Path] = m.Licences
	}
	return found, nil
}

// committedAt is when the commit was made.
func (r repository) committedAt() (time.Time, error) {
	text, err := r.git("show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, text)
}
