package toolset

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// building begins the name of what is not finished.
const building = ".building-"

// tidy deletes what a build that was interrupted left.
func (b Builder) tidy() error {
	left, err := filepath.Glob(filepath.Join(b.Cache, building+"*"))
	if err != nil {
		return fmt.Errorf("look for unfinished builds: %w", err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("delete an unfinished build: %w", err)
		}
	}
	return nil
}

// kept is how long a version stays that nobody uses: a checkout of another branch
// may go back and forth between two, and each is a quarter of an hour to build.
const kept = 7 * 24 * time.Hour

// prune deletes other versions of the set that were not used for long. They take
// hundreds of megabytes each.
func (b Builder) prune(set Set) error {
	entries, err := os.ReadDir(b.Cache)
	if err != nil {
		return fmt.Errorf("look for old versions: %w", err)
	}
	own := regexp.MustCompile(`^` + regexp.QuoteMeta(set.Name) + `-v[0-9]+\.[0-9]+\.[0-9]+\S*-[0-9a-f]{8}$`)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.IsDir() || !own.MatchString(entry.Name()) || time.Since(info.ModTime()) < kept {
			continue
		}
		if err := os.RemoveAll(filepath.Join(b.Cache, entry.Name())); err != nil {
			return fmt.Errorf("delete an old version: %w", err)
		}
	}
	return nil
}
