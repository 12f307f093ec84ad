package history

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/errortext"
	"liken.sh/gitvolume/internal/object"
)

// packedRefs is the file of all refs that are packed.
const packedRefs = "packed-refs"

// DeleteRef removes a ref if it names from now; else the error is ErrRefMoved, or
// ErrNoRef.
func (r *Repository) DeleteRef(name string, from object.ID) error {
	err := r.unlocked(func() error { return r.deleteRef(name, from) })
	if err == nil {
		err = r.leaveRefDirs(name)
	}
	if err != nil {
		return fmt.Errorf("delete the ref %q: %w", name, err)
	}
	return nil
}

// deleteRef is not libgit2's, which does not lock packed-refs for a ref that is not in
// it: a git that packs the ref at that moment would bring it back.
func (r *Repository) deleteRef(name string, from object.ID) (err error) {
	if err := r.expectRef(name, from); err != nil {
		return err
	}
	// That of a ref which is only packed may be gone, and its lock has to be in it.
	if err := r.makeRefDirs(name); err != nil {
		return err
	}
	for _, locked := range []string{packedRefs, name} {
		unlock, err := lockRef(filepath.Join(r.dir, locked))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	if err := r.expectRef(name, from); err != nil {
		return err
	}
	// As long as its own file is there, the ref is what that says.
	if err := r.unpackRef(name); err != nil {
		return err
	}
	// Of one that is only packed there is no file, or directories of former refs below it.
	err = unix.Unlink(filepath.Join(r.dir, name))
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EISDIR) {
		return fmt.Errorf("remove the file of the ref: %w", err)
	}
	return nil
}

// lockRef locks a ref, or packed-refs, as git does.
func lockRef(path string) (unlock func() error, err error) {
	path += ".lock"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		// Or a git that packs refs has just removed the directory, which was empty: it is to
		// be made again.
		return nil, fmt.Errorf("%w: %w", ErrRefLocked, err)
	case err != nil:
		return nil, fmt.Errorf("lock the ref: %w", err)
	}
	return func() error { return errors.Join(file.Close(), os.Remove(path)) }, nil
}

// unpackRef takes a ref out of packed-refs, which is locked.
func (r *Repository) unpackRef(name string) error {
	path := filepath.Join(r.dir, packedRefs)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the packed refs: %w", err)
	}
	var left []byte
	taken := false // The line before, with which goes what its tag is of.
	for line := range bytes.Lines(content) {
		if !bytes.HasPrefix(line, []byte("^")) {
			_, of, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
			taken = string(of) == name
		}
		if !taken {
			left = append(left, line...)
		}
	}
	if len(left) == len(content) {
		return nil
	}
	if err := place(path, left, 0o644); err != nil {
		return fmt.Errorf("write the packed refs: %w", errortext.WithoutPath(err))
	}
	return nil
}

// leaveRefDirs removes the directories of a ref that have become empty, in which another
// ref could not have its file, and makes durable that the ref is gone.
func (r *Repository) leaveRefDirs(name string) error {
	for dir := filepath.Dir(name); strings.Count(dir, "/") > 1; dir = filepath.Dir(dir) {
		if os.Remove(filepath.Join(r.dir, dir)) != nil {
			break // It has other refs.
		}
	}
	err := durable.SyncDir(r.existingDir(filepath.Dir(name)))
	if errors.Is(err, fs.ErrNotExist) { // It went after it was found: what is above counts.
		err = durable.SyncDir(r.existingDir(filepath.Dir(name)))
	}
	return err
}

// expectRef checks that a ref names the id.
func (r *Repository) expectRef(name string, from object.ID) error {
	ref, err := r.expect(name, from)
	if err != nil {
		return err
	}
	ref.Free()
	return nil
}
