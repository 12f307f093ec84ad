package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"liken.sh/csicommon/durable"
)

// config is the whole configuration of a repository of the store. Nothing is kept that
// someone added: a repository's configuration can name programs to run. What is fetched
// stays a pack, since libgit2 never returns from a loose object that was cut off.
const config = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logAllRefUpdates = false
	hooksPath = /dev/null
	fsmonitor = false
	fsync = all
[fetch]
	unpackLimit = 1
[gc]
	auto = 0
	packRefs = false
[maintenance]
	auto = false
`

// head makes a directory a repository. What it names means nothing to the driver, which
// always says which ref it works on.
const head = "ref: refs/heads/main\n"

// leftAfter is the age at which a temporary file is nobody's any more.
const leftAfter = 24 * time.Hour

// Create makes the directory a bare repository, if it is none, with the store's own
// configuration. It may be called again at any time, also after a crash half-way or
// one that emptied the files it writes; what is in the repository stays. It removes
// temporary files that a crash left a day ago or longer. A repository that is there and
// has other ids than those of SHA-1 is ErrObjectFormat.
func Create(dir string) error {
	if err := checkFormat(dir); err != nil {
		return fmt.Errorf("create the repository: %w", err)
	}
	for _, sub := range []string{"refs/heads", "refs/tags", "objects/info", "objects/pack"} {
		if err := makeDirs(dir, sub); err != nil {
			return fmt.Errorf("create the repository: %w", err)
		}
	}
	if err := ensure(filepath.Join(dir, "config"), func(found []byte) bool { return string(found) == config }, config); err != nil {
		return fmt.Errorf("configure the repository: %w", err)
	}
	// It comes last: with it the repository is complete.
	if err := ensure(filepath.Join(dir, "HEAD"), isHead, head); err != nil {
		return fmt.Errorf("create the repository: %w", err)
	}
	return sweep(dir)
}

// isHead tells whether it is what a repository's HEAD holds.
func isHead(found []byte) bool {
	name, ok := strings.CutPrefix(strings.TrimSpace(string(found)), "ref: ")
	return ok && CheckRef(name) == nil
}

// makeDirs makes a directory below another, each durable in the one above.
func makeDirs(dir, sub string) error {
	if err := makeDir(dir); err != nil {
		return err
	}
	for name := range strings.SplitSeq(sub, "/") {
		dir = filepath.Join(dir, name)
		if err := makeDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// makeDir makes one directory. Only root looks into the store.
func makeDir(dir string) error {
	if exists(dir) {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make a directory: %w", err)
	}
	return durable.SyncDir(filepath.Dir(dir))
}

// ensure writes the file, durably, unless it is right already.
func ensure(path string, right func([]byte) bool, content string) error {
	found, err := os.ReadFile(path)
	switch {
	case err == nil && right(found):
		return nil
	case err != nil && !os.IsNotExist(err):
		return fmt.Errorf("read what is there: %w", err)
	}
	if err := place(path, []byte(content), 0o644); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// sweep removes what a crash left while it was written, by its names: this package's
// own, and those of libgit2, which git does not know.
func sweep(dir string) error {
	before := time.Now().Add(-leftAfter)
	for _, sub := range []string{".", "objects", "objects/pack"} {
		dir := filepath.Join(dir, sub)
		listed, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("look for left files: %w", err)
		}
		for _, file := range listed {
			if !isTemporary(file.Name()) {
				continue
			}
			info, err := file.Info()
			if err != nil || info.ModTime().After(before) {
				continue
			}
			remove := os.Remove
			if info.IsDir() { // In which an index was made.
				remove = removeDir
			}
			if err := remove(filepath.Join(dir, file.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove a left file: %w", err)
			}
		}
	}
	return nil
}

// isTemporary tells whether a file is one that is being written, or was.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, strings.TrimSuffix(temporary, "*")) || strings.Contains(name, "_git2_")
}
