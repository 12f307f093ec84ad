package image

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Builder builds Dockerfiles with buildah, from base images that are made here.
type Builder struct {
	// Storage is a directory that buildah keeps images in between builds.
	Storage string
	// Work is for files in between. The caller deletes it.
	Work string
	// Pull takes base images from registries, the latest of each. Otherwise there are only
	// those that Base took over.
	Pull bool
}

// Dockerfile is what is built.
type Dockerfile struct {
	// Path is the Dockerfile's, Context the directory it copies from.
	Path, Context string
	// Name is what the image is called.
	Name string
	// Arguments are NAME=value.
	Arguments []string
	// Options are more options of buildah's.
	Options []string
}

// Base lets Dockerfiles start from the archive's image of that name.
func (b Builder) Base(archive, name string) error {
	info, err := os.Stat(archive)
	if err != nil {
		return fmt.Errorf("take over the image %s: %w", name, err)
	}
	// Taking over a toolchain takes a while, so a second name says which archive of
	// that name was taken over before.
	marks := "localhost/base/" + strings.ReplaceAll(name, ":", "-")
	mark := fmt.Sprintf("%s:%d-%d", marks, info.Size(), info.ModTime().UnixNano())
	if _, err := b.run("images", "--quiet", mark); err == nil {
		return nil
	}
	id, err := b.run("pull", "--quiet", "oci-archive:"+archive+":"+name)
	if err != nil {
		return err
	}
	if _, err := b.run("tag", id, name, mark); err != nil {
		return err
	}
	return b.forget(marks, mark)
}

// forget removes what was taken over under that name before: a toolchain is a
// gigabyte.
func (b Builder) forget(marks, latest string) error {
	names, err := b.run("images", "--noheading", "--format", "{{.Name}}:{{.Tag}}")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(names) {
		if name == latest || !strings.HasPrefix(name, marks+":") {
			continue
		}
		if _, err := b.run("rmi", name); err != nil {
			return err
		}
	}
	return nil
}

// Build builds the image into an archive at that path.
func (b Builder) Build(file Dockerfile, archive string) error {
	if err := b.bud(file); err != nil {
		return err
	}
	partial := filepath.Join(b.Work, filepath.Base(archive))
	if _, err := b.run("push", "--quiet", file.Name, "oci-archive:"+partial+":"+file.Name); err != nil {
		return err
	}
	if err := os.Rename(partial, archive); err != nil {
		return fmt.Errorf("keep the image %s: %w", file.Name, err)
	}
	// The image of that name until now has no name any more.
	_, err := b.run("rmi", "--prune")
	return err
}

// Try finds out whether it builds, and keeps nothing of it.
func (b Builder) Try(file Dockerfile) error {
	if err := b.bud(file); err != nil {
		return err
	}
	return b.Remove(file.Name)
}

// Remove deletes the image of that name.
func (b Builder) Remove(name string) error {
	_, err := b.run("rmi", name)
	return err
}

func (b Builder) bud(file Dockerfile) error {
	pull := "--pull=never"
	if b.Pull {
		pull = "--pull=always"
	}
	// No namespace is made that a container may not make.
	arguments := []string{
		"bud", pull, "--isolation=chroot", "--file", file.Path, "--tag", file.Name,
		// What compiles for another architecture runs on this one. Others set that themselves.
		"--build-arg", "BUILDPLATFORM=linux/" + runtime.GOARCH,
	}
	for _, argument := range file.Arguments {
		arguments = append(arguments, "--build-arg", argument)
	}
	_, err := b.run(append(append(arguments, file.Options...), file.Context)...)
	return err
}

func (b Builder) run(arguments ...string) (string, error) {
	caches := b.Storage + "-caches"
	if err := os.MkdirAll(caches, 0o755); err != nil {
		return "", fmt.Errorf("make room for buildah: %w", err)
	}
	command := exec.Command("buildah", append([]string{
		"--storage-driver", "vfs", "--root", b.Storage, "--runroot", filepath.Join(b.Work, "run"),
	}, arguments...)...)
	// Where it keeps what a Dockerfile mounts as caches from one build to the next.
	command.Env = append(os.Environ(), "TMPDIR="+caches)
	var output, said bytes.Buffer
	command.Stdout, command.Stderr = &output, &said
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("buildah %s: %w: %s", arguments[0], err, lastLines(output.String()+said.String()))
	}
	return string(bytes.TrimSpace(output.Bytes())), nil
}
