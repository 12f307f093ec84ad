package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"liken.sh/hack/release/changelog"
	"liken.sh/hack/release/version"
)

// mainBranch is where releases are made.
const mainBranch = "main"

// repository is the checkout that a release is made of.
type repository struct{ root string }

func open(root string) (repository, error) {
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		return repository{}, fmt.Errorf("%s is not the repository's root, where go.work is: change to it", root)
	}
	return repository{root: root}, nil
}

func (r repository) git(arguments ...string) (string, error) {
	return command{dir: r.root}.run("git", arguments...)
}

// versions are those that the driver was released with.
func (r repository) versions(driver string) ([]string, error) {
	tags, err := r.git("tag", "--list", driver+"/v*")
	if err != nil {
		return nil, err
	}
	var found []string
	for name := range strings.FieldsSeq(tags) {
		found = append(found, strings.TrimPrefix(name, driver+"/"))
	}
	return found, nil
}

// ready refuses a checkout that a release must not be made of.
func (r repository) ready() error {
	branch, err := r.git("rev-parse", "--abbrev-ref", "HEAD")
	if err != nil {
		return err
	}
	if branch != mainBranch {
		return fmt.Errorf("this is the branch %s: releases are made of %s", branch, mainBranch)
	}
	changed, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the tree has changes that are in no commit: commit them or take them away:\n%s", changed)
	}
	return nil
}

func (r repository) changelogFile(driver string) string {
	return filepath.Join(r.root, driver, "CHANGELOG.md")
}

// changelog is the driver's, empty before its first release.
func (r repository) changelog(driver string) (string, error) {
	text, err := os.ReadFile(r.changelogFile(driver))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the changelog: %w", err)
	}
	return string(text), nil
}

// released finds the notes of a tag, and refuses a tag that is not of this commit, nor of
// one that prepare made.
func (r repository) released(t tag) (notes string, err error) {
	tags, err := r.git("tag", "--points-at", "HEAD")
	if err != nil {
		return "", err
	}
	if !slices.Contains(strings.Fields(tags), t.String()) {
		return "", fmt.Errorf("this commit has no tag %s: check it out first", t)
	}
	text, err := r.changelog(t.driver)
	if err != nil {
		return "", err
	}
	notes, err = changelog.Section(text, t.version)
	if err != nil {
		return "", fmt.Errorf("%s was not prepared: %w; see hack/release/README.md", t, err)
	}
	return notes, nil
}

// next is the version that is wanted, or the one that follows from what changed.
func (r repository) next(driver, wanted string, fragments []changelog.Fragment) (string, error) {
	versions, err := r.versions(driver)
	if err != nil {
		return "", err
	}
	last := version.Latest(versions)
	if wanted != "" {
		return wanted, version.After(wanted, last)
	}
	step := version.Minor
	if changelog.OnlyFixes(fragments) {
		step = version.Patch
	}
	return version.Next(last, step), nil
}
