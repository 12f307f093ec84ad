package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"liken.sh/hack/cluster/component"
	"liken.sh/hack/cluster/image"
	"liken.sh/hack/cluster/machine"
	"liken.sh/hack/cluster/toolset"
)

// buildSystemImages makes what every node needs, in moments: the image that keeps a
// pod's namespaces, and a shell to try things with.
func (p *program) buildSystemImages() error {
	work, err := os.MkdirTemp("", "liken-cluster-")
	if err != nil {
		return fmt.Errorf("make room for images: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	pause := filepath.Join(work, "pause")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", pause, "./hack/cluster/pause")
	build.Dir = p.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build pause: %w: %s", err, output)
	}
	stock := image.Stock{Archives: p.cluster.Images(), Work: work, Say: say}
	if err := stock.Pause(component.PauseImage, pause); err != nil {
		return err
	}
	return stock.Busybox()
}

// sidecarRegistry is where the charts find Kubernetes's images of sidecars.
const sidecarRegistry = "registry.k8s.io/sig-storage/"

// haveSidecars makes the images of the programs of Kubernetes that the git driver's chart
// runs, where they are not there yet, and loads those into the nodes that run.
func (p *program) haveSidecars() error {
	work, err := os.MkdirTemp("", "liken-cluster-")
	if err != nil {
		return fmt.Errorf("make room for images: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	stock := image.Stock{Archives: p.cluster.Images(), Work: work, Say: say}
	builder := toolset.Builder{Modules: p.modules, Cache: p.cluster.Cache, Progress: say}
	began := time.Now()
	var archives []string
	for _, set := range toolset.Sidecars() {
		version, err := builder.Version(set)
		if err != nil {
			return err
		}
		dir, err := builder.Ensure(set)
		if err != nil {
			return err
		}
		for program := range set.Packages {
			archive, err := stock.Program(sidecarRegistry+program+":"+version, filepath.Join(dir, program))
			if err != nil {
				return err
			}
			if info, err := os.Stat(archive); err != nil || info.ModTime().After(began) {
				archives = append(archives, archive)
			}
		}
	}
	return p.loadIntoAll(archives)
}

// loadIntoAll loads archives into the nodes that run. The others get them when they start.
func (p *program) loadIntoAll(archives []string) error {
	if len(archives) == 0 {
		return nil
	}
	for _, name := range p.cluster.Nodes() {
		node := p.machine(name)
		if _, running := node.PID(); !running {
			say(name + " does not run; it gets them when it starts")
			continue
		}
		for _, archive := range archives {
			if err := loadArchive(node, archive); err != nil {
				return err
			}
		}
		say("loaded into " + name)
	}
	return nil
}

// load gives the node every image there is an archive of, but for those that were
// there when it was last given all: it keeps images when it is switched off.
func (p *program) load(node *machine.Machine) error {
	archives, err := filepath.Glob(filepath.Join(p.cluster.Images(), "*.tar"))
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	mark := filepath.Join(p.cluster.Dir(node.Name), "images-loaded")
	for _, archive := range archives {
		if !newer(archive, mark) {
			continue
		}
		if err := loadArchive(node, archive); err != nil {
			return err
		}
	}
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		return fmt.Errorf("remember what %s has: %w", node.Name, err)
	}
	return nil
}

// newer tells whether the file was written after the mark, or there is no mark.
func newer(file, mark string) bool {
	marked, err := os.Stat(mark)
	if err != nil {
		return true
	}
	info, err := os.Stat(file)
	return err != nil || info.ModTime().After(marked.ModTime())
}

func loadArchive(node *machine.Machine, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("load an image into %s: %w", node.Name, err)
	}
	defer file.Close()
	if err := ctr(node, file, "images", "import", "-"); err != nil {
		return fmt.Errorf("load %s into %s: %w", filepath.Base(archive), node.Name, err)
	}
	return nil
}

// driver is one of the repository's: its image is built from a Dockerfile, and its chart
// has its name.
type driver struct{ name, dockerfile, image, version, csi, namespace string }

// hasController tells whether the chart runs the sidecars of Kubernetes.
func (d driver) hasController() bool { return d.name == "gitvolume" }

// drivers are called what the documentation's manifests and commands call them.
func drivers() []driver {
	return []driver{
		{
			name: "pernode", dockerfile: "pernode/Dockerfile", image: "registry.example.com/pernode:devel", version: "devel",
			csi: "per-node.liken.sh", namespace: "per-node",
		},
		{
			name: "gitvolume", dockerfile: "gitvolume/Dockerfile", image: "registry.example.com/gitvolume:devel", version: "devel",
			csi: "git.liken.sh", namespace: "gitvolume",
		},
	}
}

// choose finds the drivers that are named, NAME or NAME=VERSION; all where none is.
func choose(all []driver, names []string) ([]driver, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, d := range all {
		known = append(known, d.name)
	}
	var chosen []driver
	for _, argument := range names {
		name, version, _ := strings.Cut(argument, "=")
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("there is no image %q to build: want one of %s", name, strings.Join(known, ", "))
		}
		d := all[i]
		d.version = cmp.Or(version, d.version)
		chosen = append(chosen, d)
	}
	return chosen, nil
}

// images builds the drivers' images, all or those named, as somebody with a
// container engine would, and loads them into the nodes that run.
func (p *program) images(names []string) error {
	wanted, err := choose(drivers(), names)
	if err != nil {
		return err
	}
	if err := havePrograms([]string{"go", "buildah", "mmdebstrap"}); err != nil {
		return err
	}
	if err := p.haveSpaceForImages(); err != nil {
		return err
	}
	// Beside the archives, since it holds whole systems, for which a /tmp in memory
	// is too small.
	work := filepath.Join(p.cluster.Cache, ".images-in-work")
	// Whoever was interrupted left gigabytes. The lock says that nobody is at work.
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("make room for images: %w", err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return fmt.Errorf("make room for images: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	if slices.ContainsFunc(wanted, driver.hasController) {
		if err := p.haveSidecars(); err != nil {
			return err
		}
	}
	archives, err := p.buildDrivers(wanted, work)
	if err != nil {
		return err
	}
	return p.loadIntoAll(archives)
}

// buildDrivers returns the archives that nodes need: the drivers, the Debian that the
// documentation's pods run, and a git server.
func (p *program) buildDrivers(wanted []driver, work string) ([]string, error) {
	stock := image.Stock{Archives: p.cluster.Images(), Work: work, Say: say}
	debian, err := stock.Debian()
	if err != nil {
		return nil, err
	}
	gitServer, err := stock.GitServer()
	if err != nil {
		return nil, err
	}
	archives := []string{debian, gitServer}
	// Not among the nodes' images: only builds start from it.
	bases := image.Stock{Archives: p.bases(), Work: work, Say: say}
	toolchain, err := goEnv("GOROOT", "GOVERSION", "GOPROXY")
	if err != nil {
		return nil, err
	}
	golang, err := bases.Golang(toolchain[0], toolchain[1])
	if err != nil {
		return nil, err
	}
	builder := image.Builder{Storage: filepath.Join(p.cluster.Cache, "buildah"), Work: work}
	for name, archive := range map[string]string{image.GolangName: golang, image.DebianName: debian} {
		if err := builder.Base(archive, name); err != nil {
			return nil, err
		}
	}
	for _, d := range wanted {
		archive := filepath.Join(p.cluster.Images(), d.name+".tar")
		archives = append(archives, archive)
		file := image.Dockerfile{
			Path: filepath.Join(p.root, d.dockerfile), Context: p.root, Name: d.image,
			Arguments: []string{"VERSION=" + d.version, "GOPROXY=" + toolchain[2]},
		}
		sum, err := d.sum(p.root, file.Arguments, golang, debian)
		if err != nil {
			return nil, err
		}
		if same, err := isFrom(archive, sum); err != nil {
			return nil, fmt.Errorf("look at the image of before: %w", err)
		} else if same {
			say(d.image + " is built from the same already")
			continue
		}
		say("building " + d.image)
		if err := os.Remove(from(archive)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("forget what %s was built from: %w", d.image, err)
		}
		if err := builder.Build(file, archive); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from(archive), []byte(sum), 0o644); err != nil {
			return nil, fmt.Errorf("say what %s was built from: %w", d.image, err)
		}
	}
	return archives, nil
}

// goEnv asks the Go that is installed, which need not be the one this program was
// built with.
func goEnv(names ...string) ([]string, error) {
	output, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("ask Go for its settings: %w", err)
	}
	values := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	if len(values) != len(names) {
		return nil, fmt.Errorf("ask Go for its settings: %q has not %d lines", output, len(names))
	}
	return values, nil
}
