package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// collectEvery is the least time between two collections of a repository.
	collectEvery = time.Hour
	// manyPacks is when a repository is collected at once: every look for an object goes
	// through all of its packs.
	manyPacks = 50
	// collectedFile is in a repository, and says how it was after the last collection.
	collectedFile = "collected"
)

// Written tells that something was committed or fetched within this use. It has the
// garbage collected soon if there are many packs by now.
func (r Repository) Written() {
	if packs, err := countPacks(r.Dir()); err == nil && packs > manyPacks {
		r.store.AskTidy()
	}
}

// collect has git collect the garbage, if there can be some.
func (s *Store) collect(ctx context.Context, name string, gc GC) error {
	dir := s.path(reposDir, name)
	if due, err := needsCollecting(dir); err != nil || !due {
		return err
	}
	// It is shared with those who commit and push, for it can take minutes: what is written
	// meanwhile is too new to be garbage.
	release, err := s.guards.share(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	s.step("collect")
	if err := gc(ctx, dir); err != nil {
		return err
	}
	written, err := lastWrite(dir)
	if err != nil {
		return err
	}
	// It need not be durable: without it there is one collection too many.
	if err := os.WriteFile(filepath.Join(dir, collectedFile), fmt.Appendln(nil, written.UnixNano()), 0o600); err != nil {
		return fmt.Errorf("note the collection: %w", err)
	}
	return nil
}

// needsCollecting tells whether a repository was written since it was collected, and that
// is long enough ago, or it has many packs. One that has just been removed needs nothing.
func needsCollecting(dir string) (bool, error) {
	written, err := lastWrite(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	collected, text := lastCollection(dir)
	if text == strconv.FormatInt(written.UnixNano(), 10) {
		return false, nil
	}
	// A clock that was put back makes it due.
	if since := time.Since(collected); since < 0 || since >= collectEvery {
		return true, nil
	}
	packs, err := countPacks(dir)
	return packs > manyPacks, err
}

// lastCollection is when a repository was collected, or else made, and what was noted
// then.
func lastCollection(dir string) (time.Time, string) {
	path := filepath.Join(dir, collectedFile)
	text, err := os.ReadFile(path)
	if err != nil {
		path = filepath.Join(dir, aboutFile)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}, ""
	}
	return info.ModTime(), strings.TrimSpace(string(text))
}

// lastWrite is when an object or a pack came into a repository, or went.
func lastWrite(dir string) (time.Time, error) {
	objects := filepath.Join(dir, "objects")
	entries, err := os.ReadDir(objects)
	if err != nil {
		return time.Time{}, fmt.Errorf("look when the repository was written: %w", err)
	}
	var last time.Time
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, nil
}

func countPacks(dir string) (int, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "objects", "pack"))
	if err != nil {
		return 0, fmt.Errorf("count the packs: %w", err)
	}
	packs := 0
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".pack") {
			packs++
		}
	}
	return packs, nil
}
