package image

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The names of base images, with which Dockerfiles and manifests ask for them.
const (
	GolangName = "docker.io/library/golang:1.26-bookworm"
	DebianName = "docker.io/library/debian:bookworm-slim"
	// GitServerName is an image that no registry has: a Debian with what serves git by
	// SSH and HTTP, for pods that stand in for a forge.
	GitServerName = "liken.sh/git-server:1"
	suite         = "bookworm"
)

func debianNames() []string { return []string{DebianName, "docker.io/library/debian:12-slim"} }

// slim leaves out what the slim images leave out, also of packages that are installed
// later, and Perl, which /usr is otherwise merged with.
func slim() []string {
	options := []string{"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"}
	for _, what := range []string{"doc/*", "groff/*", "info/*", "linda/*", "lintian/*", "locale/*", "man/*"} {
		options = append(options, "--dpkgopt=path-exclude=/usr/share/"+what)
	}
	return append(options, "--dpkgopt=path-include=/usr/share/doc/*/copyright")
}

// Debian makes a minimal Debian from Debian's packages, which takes a minute or
// two, unless there is one. Its archive's path is returned.
func (s Stock) Debian() (string, error) {
	return s.system("debian", debianNames())
}

// GitServer makes the image of that name the same way.
func (s Stock) GitServer() (string, error) {
	return s.system("git-server", []string{GitServerName}, "git", "lighttpd", "lighttpd-mod-openssl", "openssh-server", "openssl")
}

// system makes a slim Debian with those packages, unless there is one with the same.
func (s Stock) system(name string, names []string, packages ...string) (string, error) {
	options := append(slim(), include(packages)...)
	sum := sha256.Sum256([]byte(strings.Join(options, "\n")))
	archive, err := s.once(fmt.Sprintf("%s-%x", name, sum[:4]), func() (Image, error) {
		layer, err := s.bootstrap(name, options...)
		return Image{Names: names, Layers: []string{layer}, Config: Config{Cmd: []string{"bash"}, Env: []string{usualPath}}}, err
	})
	if err != nil {
		return "", err
	}
	return archive, s.only(name+"*", archive)
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
		system, err := s.bootstrap("golang", include([]string{"ca-certificates", "g++", "gcc", "git", "libc6-dev", "make", "pkg-config"})...)
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

// include is mmdebstrap's option for more packages than the least.
func include(packages []string) []string {
	if len(packages) == 0 {
		return nil
	}
	return []string{"--include=" + strings.Join(packages, ",")}
}

// bootstrap installs Debian into a tar file.
func (s Stock) bootstrap(name string, options ...string) (string, error) {
	s.Say("making a Debian for the image " + name)
	file := filepath.Join(s.Work, name+".system")
	arguments := append([]string{"--variant=minbase", "--format=tar"}, options...)
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
