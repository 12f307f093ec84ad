package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// Module is one that is linked.
type Module struct {
	// Path and Version are Go's. The standard library is std, with Go's version; a module
	// of this repository has no version.
	Path    string `json:"path"`
	Version string `json:"version"`
	// Licences are SPDX's names; "unknown" is among them where a text is not recognised.
	Licences []string `json:"licences"`

	dir   string
	files []string
}

// unknown stands for a text that is no licence as it is known.
const unknown = "an unknown licence"

// linked lists the modules of all packages that the package is built from, sorted. Those
// of this repository are one, since they have one licence.
func linked(dir, pkg string) ([]Module, error) {
	command := exec.Command("go", "list", "-tags", "grpcnotrace", "-deps", "-json=Dir,Standard,Module", pkg)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list what %s links: %w: %s", pkg, err, said.String())
	}
	standard, err := standardLibrary()
	if err != nil {
		return nil, err
	}
	found := map[string]*Module{standard.Path: &standard}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read what %s links: %w", pkg, err)
		}
		if p.Standard || p.Module == nil || p.Module.own() {
			continue
		}
		m := found[p.Module.Path]
		if m == nil {
			m = &Module{Path: p.Module.Path, Version: p.Module.Version, dir: p.Module.Dir}
			found[m.Path] = m
		}
		if err := m.add(p.Dir); err != nil {
			return nil, err
		}
	}
	return finish(found)
}

// goPackage is what go list says of a package.
type goPackage struct {
	Dir      string
	Standard bool
	Module   *goModule
}

type goModule struct {
	Path, Version, Dir string
	Main               bool
	Replace            *struct{ Version string }
}

// own tells whether it is of this repository: what is built, and what lies beside it.
func (m goModule) own() bool { return m.Main || m.Replace != nil && m.Replace.Version == "" }

func standardLibrary() (Module, error) {
	output, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		return Module{}, fmt.Errorf("ask Go where it is: %w", err)
	}
	version, root, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	m := Module{Path: "std", Version: version, dir: root}
	return m, m.add(root)
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents)(\.(txt|md))?$`)
	sourceFile  = regexp.MustCompile(`\.(go|sh|json|ya?ml|proto)$`)
)

// add takes over the licences of a package: those in its directory, and in each above it
// as far as the module goes.
func (m *Module) add(dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("look for licences of %s: %w", m.Path, err)
		}
		for _, entry := range entries {
			name, path := entry.Name(), filepath.Join(dir, entry.Name())
			wanted := (licenceFile.MatchString(name) || noticeFile.MatchString(name)) && !sourceFile.MatchString(name)
			if entry.Type().IsRegular() && wanted && !slices.Contains(m.files, path) {
				m.files = append(m.files, path)
			}
		}
		if dir == m.dir || !strings.HasPrefix(dir, m.dir+string(filepath.Separator)) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

func finish(found map[string]*Module) ([]Module, error) {
	var all []Module
	for _, m := range found {
		slices.Sort(m.files)
		for _, file := range m.files {
			if !licenceFile.MatchString(filepath.Base(file)) {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read a licence: %w", err)
			}
			m.Licences = append(m.Licences, recognise(text)...)
		}
		slices.Sort(m.Licences)
		m.Licences = slices.Compact(m.Licences)
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// recognise names the licences that the text is made of. Where much of it is something
// else, that could be a condition, and is said; so it is where a text only points at one.
func recognise(text []byte) []string {
	const mostOfIt = 75
	coverage := licensecheck.Scan(text)
	var names []string
	for _, match := range coverage.Match {
		if !match.IsURL {
			names = append(names, match.ID)
		}
	}
	if len(names) == 0 || coverage.Percent < mostOfIt {
		names = append(names, unknown)
	}
	return names
}
