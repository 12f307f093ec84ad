package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// removeUnfinished removes what a git that was ended in the middle of a fetch left in
// the repository: the packs that it was receiving, what held those that it had received,
// and its locks of the refs, which no later git would pass. The caller holds the repository, so that no other fetch or gc
// works on it. What a volume writes meanwhile has other names, and neither it nor a
// merge writes these refs. A merge does write loose objects, and only those that are too
// old to be one's go.
func removeUnfinished(dir string, refs []string) error {
	err := errors.Join(removeTemporary(dir, 0, unfinishedPacks()...), removeTemporary(dir, abandonedAge, unfinishedObject))
	for _, ref := range refs {
		err = errors.Join(err, removeFile(filepath.Join(dir, ref+".lock")))
	}
	return errors.Join(err, removeFile(filepath.Join(dir, "shallow.lock")), removeHeld(dir))
}

// fetchKeeps begins what a fetch writes into the .keep file of the pack that it received.
const fetchKeeps = "fetch-pack "

// removeHeld removes what holds a fetch's pack until its refs are written, and the list
// of shallow commits that it made for that time. With such a .keep, which nothing of git
// ever removes again, no gc could repack the pack or drop what is of no use in it.
func removeHeld(dir string) error {
	var failed error
	held, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "objects/pack/*.keep"))
	for _, file := range held {
		content, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(content), fetchKeeps) {
			failed = errors.Join(failed, removeFile(file))
		}
	}
	lists, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "shallow_*"))
	for _, file := range lists {
		failed = errors.Join(failed, removeFile(file))
	}
	return failed
}

// unfinishedPack is the name of a pack that a fetch is receiving.
const unfinishedPack = "pack/tmp_pack_*"

// unfinishedPacks are the names of packs that git is writing: a fetch, which writes
// nothing but packs, or a gc.
func unfinishedPacks() []string {
	return []string{unfinishedPack, "pack/tmp_idx_*", "pack/tmp_rev_*", "pack/.tmp-*"}
}

// unfinishedObject is the name of a loose object that git is writing.
const unfinishedObject = "??/tmp_obj_*"

// abandonedAge is when a loose object that is still unfinished is nobody's any more.
const abandonedAge = time.Hour

// removeTemporary removes objects that git was writing and that are as old as that.
func removeTemporary(dir string, age time.Duration, patterns ...string) error {
	var failed error
	for _, pattern := range patterns {
		// The pattern is well-formed, and a directory that is not there has no files.
		files, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "objects", pattern))
		for _, file := range files {
			if info, err := os.Lstat(file); age > 0 && (err != nil || time.Since(info.ModTime()) < age) {
				continue // Who wrote it has ended it, or still does.
			}
			failed = errors.Join(failed, removeFile(file))
		}
	}
	return failed
}

// escapeGlob has the pattern mean the path's own bytes.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Recover removes everything that processes which are dead left half done in the
// repository. It must be called only while nothing else works on it, such as at the
// start of the driver that owns it: a lock does not tell whose it is.
func (c *Command) Recover(ctx context.Context, dir string) error {
	unlock, err := c.repositories.Lock(ctx, dir)
	if err != nil {
		return fmt.Errorf("recover the repository: %w", err)
	}
	defer unlock()
	err = errors.Join(removeTemporary(dir, 0, append(unfinishedPacks(), unfinishedObject)...), removeHeld(dir), removeAttributes(dir))
	for _, name := range []string{"HEAD.lock", "config.lock", "packed-refs.lock", "packed-refs.new", "shallow.lock", "index.lock", "gc.pid", "gc.pid.lock"} {
		err = errors.Join(err, removeFile(filepath.Join(dir, name)))
	}
	err = errors.Join(err, filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".lock") {
			return err
		}
		return removeFile(path)
	}))
	if err != nil {
		return fmt.Errorf("recover the repository: %w", err)
	}
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what was left half done: %w", err)
	}
	return nil
}
