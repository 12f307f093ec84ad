// Command licences tells under which licences the drivers are given away: those of every
// module that is linked into a program. It must never be part of one, and asks no network.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const usage = `usage:
  licences check DIR PACKAGE   fail unless all that the package links is allowed
  licences list DIR PACKAGE    the modules with their versions and licences, as JSON
  licences texts DIR PACKAGE   the texts of all licences and notices, for an image
DIR is the package's module. What GOOS, GOARCH and CGO_ENABLED say is what is meant`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	if len(arguments) != 3 {
		return errors.New(usage)
	}
	modules, err := linked(arguments[1], arguments[2])
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "check":
		return check(modules)
	case "list":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(modules)
	case "texts":
		return texts(modules, out)
	}
	return errors.New(usage)
}

// allowed are licences that ask for no more than their text beside a program. libgit2
// (GPL-2.0 with the exception for linking) is no module: the git driver finds it in its
// image as a library of its own, with its text where Debian puts it.
func allowed() []string { return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"} }

// check names every module whose licence is not allowed or not known.
func check(modules []Module) error {
	var wrong []error
	for _, m := range modules {
		if len(m.Licences) == 0 {
			wrong = append(wrong, fmt.Errorf("%s %s has no licence that is known: look at %s", m.Path, m.Version, m.dir))
		}
		for _, licence := range m.Licences {
			if !slices.Contains(allowed(), licence) {
				wrong = append(wrong, fmt.Errorf("%s %s is under %s: want one of %s", m.Path, m.Version, licence, strings.Join(allowed(), ", ")))
			}
		}
	}
	return errors.Join(wrong...)
}

// texts writes what has to go along with the program.
func texts(modules []Module, out io.Writer) error {
	for _, m := range modules {
		for _, file := range m.files {
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read a licence: %w", err)
			}
			title := fmt.Sprintf("%s %s, %s", m.Path, m.Version, strings.TrimPrefix(strings.TrimPrefix(file, m.dir), "/"))
			if _, err := fmt.Fprintf(out, "%s\n%s\n\n%s\n\n", title, strings.Repeat("=", len(title)), strings.TrimSpace(string(text))); err != nil {
				return err
			}
		}
	}
	return nil
}
