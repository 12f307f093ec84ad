package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"liken.sh/hack/cluster/image"
)

// architectures are those that a release has an image for.
func architectures() []string { return []string{"amd64", "arm64"} }

// archive is where the image of one architecture is put.
func archive(output, architecture string) string {
	return filepath.Join(output, "image-"+architecture+".tar")
}

// dockerfile is the driver's image as a release has it: with the time of the commit, so
// that the same commit gives the same files.
func (r repository) dockerfile(t tag, architecture string) (image.Dockerfile, error) {
	committed, err := r.git("show", "--no-patch", "--format=%ct", "HEAD")
	if err != nil {
		return image.Dockerfile{}, err
	}
	proxy, err := command{dir: r.root}.run("go", "env", "GOPROXY")
	if err != nil {
		return image.Dockerfile{}, err
	}
	return image.Dockerfile{
		Path: filepath.Join(r.root, t.driver, "Dockerfile"), Context: r.root, Name: "localhost/release/" + t.driver + ":" + architecture,
		Arguments: []string{"VERSION=" + t.version, "GOPROXY=" + proxy},
		Options:   []string{"--platform", "linux/" + architecture, "--timestamp", committed},
	}, nil
}

// buildForTag builds the image for this machine's architecture, from the bases that
// registries have. Each architecture has a machine of its own: the git driver's image
// installs packages, which runs programs of that architecture.
func buildForTag(r repository, t tag) (err error) {
	output := r.output(t)
	work := filepath.Join(output, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("make room for an image: %w", err)
	}
	defer removeAll(work, &err)
	file, err := r.dockerfile(t, runtime.GOARCH)
	if err != nil {
		return err
	}
	builder := image.Builder{Storage: filepath.Join(work, "storage"), Work: work, Pull: true}
	say("building the image of %s for %s", t, runtime.GOARCH)
	return builder.Build(file, archive(output, runtime.GOARCH))
}
