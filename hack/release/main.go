// Command release prepares, publishes and rehearses releases of one driver: its image and
// its chart, without the other driver's. It must never push a commit or a tag, which is
// a person's to do, and publishes nothing but what a tag says.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"liken.sh/hack/release/version"
)

const usage = `usage:
  release prepare DRIVER [vX.Y.Z]   commit the changelog of the next release, and say what to push
  release rehearse DRIVER [vX.Y.Z]  do all of a release but the publishing, and leave nothing
  release image TAG                 build the tag's image for this machine's architecture
  release publish TAG               push, sign and verify those images and the chart
  release notes TAG                 print what the changelog says of the tag
DRIVER is pernode or gitvolume, TAG is DRIVER/vX.Y.Z`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 || len(arguments) > 3 {
		return errors.New(usage)
	}
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	repository, err := open(root)
	if err != nil {
		return err
	}
	subject, wanted := arguments[1], strings.Join(arguments[2:], "")
	switch arguments[0] {
	case "prepare", "rehearse":
		driver, err := driverOf(subject)
		if err != nil {
			return err
		}
		if arguments[0] == "rehearse" {
			return rehearse(repository, driver, wanted)
		}
		release, err := prepare(repository, driver, wanted, time.Now())
		if err != nil {
			return err
		}
		release.sayWhatToPush()
		return nil
	case "image", "publish", "notes":
		tag, err := parseTag(subject)
		if err != nil {
			return err
		}
		return forTag(arguments[0], repository, tag)
	}
	return errors.New(usage)
}

// drivers are those that are released, each by its directory's name.
func drivers() []string { return []string{"pernode", "gitvolume"} }

func driverOf(name string) (string, error) {
	if !slices.Contains(drivers(), name) {
		return "", fmt.Errorf("there is no driver %q: want %s", name, strings.Join(drivers(), " or "))
	}
	return name, nil
}

// tag is what a release is of.
type tag struct{ driver, version string }

func (t tag) String() string { return t.driver + "/" + t.version }

// chartVersion is the version as Helm writes it.
func (t tag) chartVersion() string { return strings.TrimPrefix(t.version, "v") }

func parseTag(text string) (tag, error) {
	driver, v, _ := strings.Cut(text, "/")
	if _, err := driverOf(driver); err != nil {
		return tag{}, fmt.Errorf("%q is no tag of a release: %w", text, err)
	}
	if err := version.Valid(v); err != nil {
		return tag{}, fmt.Errorf("%q is no tag of a release: %w", text, err)
	}
	return tag{driver: driver, version: v}, nil
}

// forTag does what continuous integration asks for, each in the checkout of the tag.
func forTag(what string, r repository, t tag) error {
	notes, err := r.released(t)
	if err != nil {
		return err
	}
	switch what {
	case "notes":
		fmt.Print(notes)
		return nil
	case "image":
		return buildForTag(r, t)
	}
	return publishFromContinuousIntegration(r, t)
}

func say(format string, arguments ...any) { fmt.Printf("==> "+format+"\n", arguments...) }

// output is where images, lists and notes of a release are put, which git ignores.
func (r repository) output(t tag) string { return filepath.Join(r.root, "bin", "release", t.driver) }
