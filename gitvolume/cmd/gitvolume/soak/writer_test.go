//go:build soak

package soak

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writer is a volume to write to, with its application.
type writer struct {
	*seat
	application *application
	// looks counts the comparisons of the tree with the journal.
	looks int
}

// use is the life of one pod.
func (w *writer) use(ctx context.Context) {
	root := w.target()
	w.compare(root, "as its pod starts")
	for ctx.Err() == nil {
		w.application.step(root)
		select {
		case <-ctx.Done():
		case <-time.After(w.application.think()):
		}
	}
	w.compare(root, "as its pod stops")
}

// compare compares the tree with the journal, while the application is at rest: its own
// files are exactly what it made of them, and its lines are in the files of everybody's.
func (w *writer) compare(root, when string) {
	w.looks++
	journal := w.application.journal
	found := map[string]bool{}
	top := filepath.Join(root, journal.name)
	err := filepath.WalkDir(top, func(at string, e fs.DirEntry, err error) error {
		path, _ := filepath.Rel(root, at)
		if err != nil || e.IsDir() || !journal.owns(path) {
			return ignoreMissing(err)
		}
		found[path] = true
		want, has := journal.get(path)
		got, err := read(at)
		switch {
		case err != nil:
			w.findings.add("%s: %s of %s cannot be read: %v", when, path, journal.name, err)
		case !has:
			w.findings.add("%s: %s has %s, which the application has not; last entry: %s", when, journal.name, path, journal.last(path))
		case got.content != want.content:
			w.findings.add("%s: %s has other content (%d bytes for %d) than %s", when, path, len(got.content), len(want.content), journal.told(want.entry))
		case got.mode != want.mode && want.mode.IsRegular():
			w.findings.add("%s: %s has mode %v, want %v of %s", when, path, got.mode, want.mode, journal.told(want.entry))
		}
		return nil
	})
	if err != nil {
		w.findings.add("%s: %s cannot be looked at: %v", when, journal.name, err)
	}
	for _, path := range journal.paths() {
		if !found[path] {
			w.findings.add("%s: %s is lost; last entry: %s", when, path, journal.last(path))
		}
	}
	w.compareLines(root, when)
}

func (w *writer) compareLines(root, when string) {
	journal := w.application.journal
	for i := range shares {
		path := sharePath(i)
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			w.findings.add("%s: %s of %s cannot be read: %v", when, path, journal.name, err)
			continue
		}
		for _, number := range journal.missing(path, string(content)) {
			w.findings.add("%s: a line is lost from %s: %s", when, path, journal.told(number))
		}
	}
}

// missing are the entries of the lines that the content of a file of everybody's lacks.
func (j *journal) missing(path, content string) (numbers []int) {
	there := map[string]bool{}
	for line := range strings.Lines(content) {
		there[strings.TrimSuffix(line, "\n")] = true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for line, number := range j.lines[path] {
		if !there[line] {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// ignoreMissing is the error, unless it is that nothing is there.
func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
