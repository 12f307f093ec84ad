package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"liken.sh/hack/release/changelog"
)

// prepared is a release that is committed and waits for its tag.
type prepared struct {
	tag
	commit string
}

// prepare commits the changelog of the driver's next release, made of its fragments, which
// are gone with it. The version is the wanted one, or where that is empty the one that
// follows from the fragments. On an error the checkout is as it was.
func prepare(r repository, driver, wanted string, now time.Time) (prepared, error) {
	if err := r.ready(); err != nil {
		return prepared{}, err
	}
	changes := filepath.Join(r.root, driver, "changes")
	fragments, err := changelog.Fragments(changes)
	if err != nil {
		return prepared{}, err
	}
	if len(fragments) == 0 {
		return prepared{}, fmt.Errorf("%s has no fragment in %s/changes: a release without a change is none", driver, driver)
	}
	v, err := r.next(driver, wanted, fragments)
	if err != nil {
		return prepared{}, err
	}
	release := prepared{tag: tag{driver: driver, version: v}}
	before, err := r.changelog(driver)
	if err != nil {
		return prepared{}, err
	}
	after, err := changelog.Add(before, driver, v, now.UTC().Format(time.DateOnly), fragments)
	if err != nil {
		return prepared{}, err
	}
	if err := r.buildsAlone(driver); err != nil {
		return prepared{}, err
	}
	if release.commit, err = r.commit(release.tag, after, fragments); err != nil {
		_, undo := r.git("reset", "--quiet", "--hard", "HEAD")
		return prepared{}, errors.Join(err, undo)
	}
	return release, nil
}

// commit takes the fragments away and puts the changelog in their place.
func (r repository) commit(t tag, text string, fragments []changelog.Fragment) (string, error) {
	arguments := []string{"rm", "--quiet", "--"}
	for _, fragment := range fragments {
		arguments = append(arguments, fragment.File)
	}
	if _, err := r.git(arguments...); err != nil {
		return "", err
	}
	if err := os.WriteFile(r.changelogFile(t.driver), []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("write the changelog: %w", err)
	}
	if _, err := r.git("add", "--", r.changelogFile(t.driver)); err != nil {
		return "", err
	}
	if _, err := r.git("commit", "--quiet", "-m", "Release "+t.String()); err != nil {
		return "", err
	}
	return r.git("rev-parse", "HEAD")
}

func (p prepared) sayWhatToPush() {
	fmt.Printf(`%[1]s is committed as %[2]s. Look at it, then publish it with:
  git push origin %[3]s
  git tag --sign -m "Release %[1]s" %[1]s %[2]s
  git push origin %[1]s
`, p.tag, p.commit, mainBranch)
}
