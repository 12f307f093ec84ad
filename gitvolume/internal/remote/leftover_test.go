package remote

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// unfinished are the files in a repository that a git which was ended leaves.
func unfinished(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	check(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-") || strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".keep") || strings.HasPrefix(name, "shallow_") || strings.HasPrefix(name, attributesPrefix) {
			found = append(found, path)
		}
		return err
	}))
	return found
}
