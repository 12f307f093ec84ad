package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/errortext"
	"liken.sh/gitvolume/internal/object"
)

const (
	// conflictStatus is how `git merge-tree` ends where it sees a conflict; everything
	// else that goes wrong gives it another status.
	conflictStatus = 1
	// longestMerge bounds what is kept of a merge's output, in bytes: the tree's id and
	// the names of paths that conflict.
	longestMerge = 1 << 20
	// attributesPrefix begins the names of directories with attributes files. Each is in the
	// repository that the merge writes to: the Command's own directory may be in memory, which
	// all volumes of a node share.
	attributesPrefix = "attributes-"
)

// Merger merges trees in one repository with git.
type Merger struct {
	command *Command
	dir     string
}

// Merger is git's merge in the bare repository.
func (c *Command) Merger(dir string) *Merger { return &Merger{command: c, dir: dir} }

// MergeTrees merges the trees of two commits of the repository, with what they forked
// from as the base, as `git rebase` does: renamed files are found, renamed directories
// are not. attributes are the .gitattributes files that count, by path; the paths have to
// be ones that git can hold. The tree that comes of it is written to the repository. If
// there is a conflict, its paths are given and no tree; attributes at a path too long for
// the disk are one.
func (m *Merger) MergeTrees(ctx context.Context, ours, theirs object.ID, attributes map[string][]byte) (object.ID, []string, error) {
	tree, conflicts, err := m.merge(ctx, ours, theirs, attributes)
	if err != nil {
		return object.ID{}, nil, fmt.Errorf("merge the trees of %s and %s: %w", ours, theirs, err)
	}
	return tree, conflicts, nil
}

func (m *Merger) merge(ctx context.Context, ours, theirs object.ID, attributes map[string][]byte) (object.ID, []string, error) {
	work, tooLong, err := m.workTree(attributes)
	if len(tooLong) > 0 && err == nil {
		return object.ID{}, tooLong, nil
	}
	if err != nil {
		return object.ID{}, nil, fmt.Errorf("write the attributes: %w", err)
	}
	defer func() { _ = removeTree(work) }() // What is left goes with Recover.
	output := &head{limit: longestMerge}
	e, err := m.command.do(ctx, run{
		args:   []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours.String(), theirs.String()},
		dir:    m.dir,
		work:   work,
		config: [][2]string{{"merge.directoryRenames", "false"}},
		stdout: output,
	})
	conflict := e.status == conflictStatus && errors.Is(err, ErrFailed)
	if err != nil && !conflict {
		return object.ID{}, nil, err
	}
	first, rest, _ := strings.Cut(string(output.kept), "\x00")
	tree, parseErr := object.Parse(first)
	// Each name ends in NUL; what comes after the last one is a name that was cut.
	paths := strings.Split(rest, "\x00")
	paths = paths[:len(paths)-1]
	switch {
	case parseErr != nil:
		return object.ID{}, nil, errors.Join(err, parseErr)
	case conflict && len(paths) == 0:
		return object.ID{}, nil, err
	case conflict:
		return object.ID{}, paths, nil
	}
	return tree, nil, nil
}

// workTree makes a directory with the attributes files and nothing else. It makes none if
// there are paths that git's trees can have and a disk cannot, and gives these: nobody
// but people can tell what a merge there is to do.
func (m *Merger) workTree(attributes map[string][]byte) (work string, tooLong []string, err error) {
	work, err = os.MkdirTemp(m.dir, attributesPrefix)
	if err != nil {
		return "", nil, errortext.WithoutPath(err)
	}
	for _, path := range slices.Sorted(maps.Keys(attributes)) {
		err = writeAttributes(work, path, attributes[path])
		if errors.Is(err, unix.ENAMETOOLONG) {
			tooLong, err = append(tooLong, path), nil
		}
		if err != nil {
			break
		}
	}
	if err != nil || len(tooLong) > 0 {
		return "", tooLong, errors.Join(err, errortext.WithoutPath(removeTree(work)))
	}
	return work, nil, nil
}

// writeAttributes gives errors without the file: its directory has another name each time,
// and how far a full disk lets it come is chance.
func writeAttributes(work, path string, content []byte) error {
	if !filepath.IsLocal(path) {
		return fmt.Errorf("%q leads out of a tree", path)
	}
	file := filepath.Join(work, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return errortext.WithoutPath(err)
	}
	return errortext.WithoutPath(os.WriteFile(file, content, 0o600))
}

// removeAttributes removes what merges of a process that is dead left in the repository.
func removeAttributes(dir string) (err error) {
	// The pattern is well-formed, and a directory that is not there has nothing.
	left, _ := filepath.Glob(filepath.Join(escapeGlob(dir), attributesPrefix+"*"))
	for _, work := range left {
		err = errors.Join(err, removeTree(work))
	}
	return err
}

// removeTree removes a directory that this process alone writes.
func removeTree(dir string) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	for _, path := range slices.Backward(paths) {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// head keeps the beginning of what is written to it.
type head struct {
	kept  []byte
	limit int
}

// Write keeps as much as there is room for.
func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), h.limit-len(h.kept))]...)
	return len(p), nil
}
