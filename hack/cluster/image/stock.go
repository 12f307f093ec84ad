package image

import (
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Stock makes the images that are not built from a Dockerfile, in place of those
// that a registry would have.
type Stock struct {
	// Archives is where they are kept, one file each.
	Archives string
	// Work is for files in between. The caller deletes it.
	Work string
	// Say is told what takes long.
	Say func(line string)
}

// Names of images as a Kubernetes node and a Dockerfile know them.
const (
	BusyboxName = "docker.io/library/busybox:stable"
	busybox     = "/bin/busybox"
)

// Pause makes an image of that name from the one program in it.
func (s Stock) Pause(name, program string) error {
	layer, err := s.layer("pause", []Entry{{Path: "/pause", From: program}})
	if err != nil {
		return err
	}
	return s.keep("pause", Image{Names: []string{name}, Layers: []string{layer}, Config: Config{Entrypoint: []string{"/pause"}}})
}

// Program makes an image of that name, which has a registry and a tag, of the one program in
// it, unless there is one, and returns its archive. Those of other tags are deleted.
func (s Stock) Program(name, program string) (string, error) {
	base := filepath.Base(program)
	_, tag, _ := strings.Cut(filepath.Base(name), ":")
	archive, err := s.once(base+"-"+tag, func() (Image, error) {
		layer, err := s.layer(base, []Entry{{Path: "/" + base, From: program}})
		return Image{Names: []string{name}, Layers: []string{layer}, Config: Config{Entrypoint: []string{"/" + base}}}, err
	})
	if err != nil {
		return "", err
	}
	return archive, s.only(base+"-v*", archive)
}

// Busybox makes an image of the host's static busybox, with all its commands.
func (s Stock) Busybox() error {
	if err := isStatic(busybox); err != nil {
		return err
	}
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("ask busybox for its commands: %w", err)
	}
	entries := []Entry{
		{Path: "/bin"}, {Path: "/etc"}, {Path: "/root"}, {Path: "/tmp", Mode: 0o777 | fs.ModeSticky},
		{Path: "/etc/passwd", Content: "root:x:0:0:root:/root:/bin/sh\n"},
		{Path: "/etc/group", Content: "root:x:0:\n"},
		{Path: busybox, From: busybox},
	}
	for command := range strings.FieldsSeq(string(list)) {
		if command != "busybox" {
			entries = append(entries, Entry{Path: "/bin/" + command, Link: "busybox"})
		}
	}
	layer, err := s.layer("busybox", entries)
	if err != nil {
		return err
	}
	return s.keep("busybox", Image{
		Names: []string{BusyboxName}, Layers: []string{layer},
		Config: Config{Cmd: []string{"sh"}, Env: []string{"PATH=/bin"}},
	})
}

// isStatic finds the program that would not start in an image of its own, with no
// better message than that there is no such file.
func isStatic(program string) error {
	file, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("look at %s: %w", program, err)
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs libraries: install the package busybox-static in its place", program)
		}
	}
	return nil
}

func (s Stock) layer(name string, entries []Entry) (string, error) {
	file := filepath.Join(s.Work, name+".layer")
	return file, writeFile(file, func(out io.Writer) error { return WriteLayer(out, entries) })
}

// keep puts the archive in place whole: a reader never sees a part.
func (s Stock) keep(name string, image Image) error {
	if err := os.MkdirAll(s.Archives, 0o755); err != nil {
		return fmt.Errorf("make room for images: %w", err)
	}
	file := filepath.Join(s.Archives, name+".tar")
	if err := writeFile(file+".new", func(out io.Writer) error { return Write(out, image) }); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("keep the image %s: %w", name, err)
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("make an image: %w", err)
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("make an image: %w", err)
	}
	return nil
}
