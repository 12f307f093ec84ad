// Package toolset builds the programs of the cluster from Go modules, once per
// version. Each set is pinned by a module of its own below hack/cluster/build, so
// that the sets' dependencies need not agree. It must never write into the
// checkout.
package toolset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Set is programs of one origin that are built together.
type Set struct {
	Name string
	// Module is where the version is read from.
	Module string
	// Packages are built to programs of these names.
	Packages map[string]string
	// VersionFlags are the linker's, by which programs know their version: what is
	// no `go install` of a release does not know it.
	VersionFlags func(version string) []string
	// AsTests has it be compiled as the tests are, with which it has the Kubernetes client
	// in common, of the same version: that is compiled once then.
	AsTests bool
}

// Sets are all sets, the quickest first: a mistake in the set-up of the machine
// shows before the long one.
func Sets() []Set {
	return []Set{
		{
			Name: "etcd", Module: "go.etcd.io/etcd/server/v3",
			Packages: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"},
		},
		{
			Name: "containerd", Module: "github.com/containerd/containerd/v2",
			Packages: inDirectory("github.com/containerd/containerd/v2/cmd", "containerd", "containerd-shim-runc-v2", "ctr"),
			VersionFlags: func(version string) []string {
				return []string{"-X", "github.com/containerd/containerd/v2/version.Version=" + version}
			},
		},
		{
			Name: "kubernetes", Module: "k8s.io/kubernetes",
			Packages: inDirectory("k8s.io/kubernetes/cmd",
				"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"),
			VersionFlags: kubernetesVersion,
		},
	}
}

// Sidecars are what Kubernetes has published images of, which the git driver's chart runs
// beside its controller: each set is one program.
func Sidecars() []Set {
	version := func(version string) []string { return []string{"-X", "main.version=" + version} }
	return []Set{
		{
			Name: "resizer", Module: "github.com/kubernetes-csi/external-resizer/v2",
			Packages:     inDirectory("github.com/kubernetes-csi/external-resizer/v2/cmd", "csi-resizer"),
			VersionFlags: version, AsTests: true,
		},
		{
			Name: "provisioner", Module: "github.com/kubernetes-csi/external-provisioner/v6",
			Packages:     inDirectory("github.com/kubernetes-csi/external-provisioner/v6/cmd", "csi-provisioner"),
			VersionFlags: version, AsTests: true,
		},
	}
}

func inDirectory(parent string, names ...string) map[string]string {
	packages := map[string]string{}
	for _, name := range names {
		packages[name] = parent + "/" + name
	}
	return packages
}

// kubernetesVersion sets what clients compare: without it an API server calls
// itself v0.0.0.
func kubernetesVersion(version string) []string {
	const pkg = "k8s.io/component-base/version."
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return []string{
		"-X", pkg + "gitVersion=" + version,
		"-X", pkg + "gitMajor=" + parts[0],
		"-X", pkg + "gitMinor=" + parts[1],
	}
}

// Builder builds sets. One cache has one builder at a time: the caller sees to it.
type Builder struct {
	// Modules is the directory with one module per set.
	Modules string
	// Cache is where the built programs are kept.
	Cache string
	// Progress is told what is being done, now and then. A set that is there is not
	// mentioned.
	Progress func(line string)
}

// Dir is where the set's programs are once built. It changes with everything they
// are built from.
func (b Builder) Dir(set Set) (string, error) {
	module := filepath.Join(b.Modules, set.Name)
	sum := sha256.New()
	sum.Write([]byte(runtime.Version() + " " + runtime.GOARCH + "\n"))
	for _, file := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return "", fmt.Errorf("read what %s is built from: %w", set.Name, err)
		}
		sum.Write(content)
	}
	version, err := b.Version(set)
	if err != nil {
		return "", err
	}
	return filepath.Join(b.Cache, fmt.Sprintf("%s-%s-%.4x", set.Name, version, sum.Sum(nil))), nil
}

// Version is the one that the set's module pins.
func (b Builder) Version(set Set) (string, error) {
	content, err := os.ReadFile(filepath.Join(b.Modules, set.Name, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read what %s is built from: %w", set.Name, err)
	}
	version, err := pin(string(content), set.Module)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", set.Name, err)
	}
	return version, nil
}

// Ensure builds the set where it is not there yet, and returns where its programs
// are.
func (b Builder) Ensure(set Set) (string, error) {
	dir, err := b.Dir(set)
	if err != nil {
		return "", err
	}
	// Also says that it is in use.
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err == nil {
		return dir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("take %s from the cache: %w", set.Name, err)
	}
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache: %w", err)
	}
	if err := b.tidy(); err != nil {
		return "", err
	}
	// Beside its final name, so that a build that was interrupted is not taken for a
	// finished one.
	partial, err := os.MkdirTemp(b.Cache, building+"*")
	if err != nil {
		return "", fmt.Errorf("make room for %s: %w", set.Name, err)
	}
	defer func() { _ = os.RemoveAll(partial) }()
	if err := os.Chmod(partial, 0o755); err != nil {
		return "", fmt.Errorf("make room for %s: %w", set.Name, err)
	}
	if err := b.build(set, partial); err != nil {
		return "", fmt.Errorf("build %s: %w", set.Name, err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return "", fmt.Errorf("keep %s: %w", set.Name, err)
	}
	return dir, b.prune(set)
}

func (b Builder) build(set Set, dir string) error {
	version, err := b.Version(set)
	if err != nil {
		return err
	}
	// Nothing of what a debugger reads is written in the end, so it is not made either.
	flags := []string{"-s", "-w"}
	if set.VersionFlags != nil {
		flags = append(flags, set.VersionFlags(version)...)
	}
	meter := &meter{set: set.Name + " " + version, say: b.Progress}
	if err := meter.count(b.goCommand(set, "list", "-deps", "-f", "{{if not .Standard}}.{{end}}"), set); err != nil {
		return err
	}
	build := []string{"build", "-v", "-gcflags=all=-dwarf=false", "-o", dir + "/"}
	if set.AsTests {
		// The same file for any host all the same.
		flags = append(flags, "-linkmode", "external", "-extldflags", "-static")
	} else {
		build = append(build, "-trimpath")
	}
	build = append(build, "-ldflags", strings.Join(flags, " "))
	// All at once, so that packages are compiled for several programs at a time.
	for _, pkg := range set.Packages {
		build = append(build, pkg)
	}
	if err := meter.run(b.goCommand(set, build...)); err != nil {
		return err
	}
	return rename(set, dir)
}

// rename gives a program its name where Go names it after the directory it is in.
func rename(set Set, dir string) error {
	for name, pkg := range set.Packages {
		elements := strings.Split(pkg, "/")
		last := elements[len(elements)-1]
		if regexp.MustCompile(`^v[0-9]+$`).MatchString(last) {
			last = elements[len(elements)-2]
		}
		if last == name {
			continue
		}
		if err := os.Rename(filepath.Join(dir, last), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (b Builder) goCommand(set Set, arguments ...string) *exec.Cmd {
	command := exec.Command("go", arguments...)
	command.Dir = filepath.Join(b.Modules, set.Name)
	// A workspace would lend these modules versions that they do not name; and
	// without cgo the programs run on any host.
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false", "CGO_ENABLED=0")
	if set.AsTests {
		command.Env = append(command.Env, "CGO_ENABLED=1")
	}
	return command
}

// pin is the version at which go.mod requires the module.
func pin(gomod, module string) (string, error) {
	match := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(module) + `\s+(v[0-9]+\.[0-9]+\.[0-9]+\S*)`).FindStringSubmatch(gomod)
	if match == nil {
		return "", errors.New("go.mod does not require " + module)
	}
	return match[1], nil
}
