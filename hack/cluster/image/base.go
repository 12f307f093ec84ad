package image

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The names of base images, with which Dockerfiles and manifests ask for them.
const (
	GolangName = "docker.io/library/golang:1.26-bookworm"
	suite      = "bookworm"
)

func debianNames() []string {
	return []string{"docker.io/library/debian:bookworm-slim", "docker.io/library/debian:12-slim"}
}

// Debian makes a minimal Debian from Debian's packages, which takes a minute or
// two, unless there is one. Its archive's path is returned.
func (s Stock) Debian() (string, error) {
	return s.once("debian", func() (Image, error) {
		layer, err := s.bootstrap("debian")
		return Image{Names: debianNames(), Layers: []string{layer}, Config: Config{Cmd: []string{"bash"}, Env: []string{usualPath}}}, err
	})
}

const certificates = "/etc/ssl/certs/ca-certificates.crt"

const usualPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Golang makes what the image of that name has: a Debian with a C compiler and git,
// and the Go of this machine, at goroot, below /usr/local/go.
func (s Stock) Golang(goroot, version string) (string, error) {
	archive, err := s.once("golang-"+version, s.golang(goroot))
	if err != nil {
		return "", err
	}
	return archive, s.only("golang-*", archive)
}

func (s Stock) golang(goroot string) func() (Image, error) {
	return func() (Image, error) {
		system, err := s.bootstrap("golang", "ca-certificates", "g++", "gcc", "git", "libc6-dev", "make", "pkg-config")
		if err != nil {
			return Image{}, err
		}
		toolchain, err := s.layer("toolchain", []Entry{
			{Path: "/usr/local/go", From: goroot},
			{Path: "/go", Mode: 0o777},
			// A host behind a proxy trusts an authority that Debian does not know.
			{Path: certificates, From: certificates},
		})
		if err != nil {
			return Image{}, err
		}
		return Image{
			Names:  []string{GolangName},
			Layers: []string{system, toolchain},
			Config: Config{
				Cmd: []string{"bash"}, WorkingDir: "/go",
				Env: []string{
					"GOPATH=/go", "GOTOOLCHAIN=local",
					strings.Replace(usualPath, "=", "=/go/bin:/usr/local/go/bin:", 1),
				},
			},
		}, nil
	}
}

// only deletes the archives of other versions.
func (s Stock) only(names, archive string) error {
	all, err := filepath.Glob(filepath.Join(s.Archives, names+".tar"))
	if err != nil {
		return fmt.Errorf("look for old images: %w", err)
	}
	for _, other := range all {
		if other == archive {
			continue
		}
		if err := os.Remove(other); err != nil {
			return fmt.Errorf("delete an old image: %w", err)
		}
	}
	return nil
}

// once makes an image that is not there yet.
func (s Stock) once(name string, compose func() (Image, error)) (string, error) {
	archive := filepath.Join(s.Archives, name+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	image, err := compose()
	if err != nil {
		return "", err
	}
	return archive, s.keep(name, image)
}

// bootstrap installs Debian into a tar file.
func (s Stock) bootstrap(name string, packages ...string) (string, error) {
	s.Say("making a Debian for the image " + name)
	file := filepath.Join(s.Work, name+".system")
	arguments := []string{"--variant=minbase", "--format=tar"}
	if len(packages) > 0 {
		arguments = append(arguments, "--include="+strings.Join(packages, ","))
	}
	command := exec.Command("mmdebstrap", append(arguments, suite, file)...)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("mmdebstrap for the image %s: %w: %s", name, err, lastLines(said.String()))
	}
	return file, nil
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
