package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Canonical returns the one spelling of target: its parent with every symlink
// resolved, and its last component as it is, followed or not. Two spellings of one
// target must be one key, one hold and one line of the mount table. The target
// itself need not exist; a missing parent is an error that wraps fs.ErrNotExist.
func Canonical(target string) (string, error) {
	if !filepath.IsAbs(target) {
		return "", fmt.Errorf("%q is not an absolute path: %w", target, ErrPath)
	}
	if strings.ContainsRune(target, 0) {
		return "", fmt.Errorf("%q holds a zero byte: %w", target, ErrPath)
	}
	// Not filepath.Dir and Base: they would take "link/.." away before the link is
	// resolved, which names another directory than the kernel's walk does.
	rest := target
	for {
		if trimmed := strings.TrimSuffix(strings.TrimRight(rest, "/"), "/."); trimmed != rest {
			rest = trimmed
			continue
		}
		break
	}
	cut := strings.LastIndexByte(rest, '/')
	if cut < 0 {
		return "", fmt.Errorf("%q is the root directory: %w", target, ErrPath)
	}
	parent, last := rest[:cut+1], rest[cut+1:]
	if last == ".." {
		return "", fmt.Errorf("%q ends in \"..\": %w", target, ErrPath)
	}
	resolved, err := resolve(parent)
	if err != nil {
		return "", fmt.Errorf("resolve the parent of %q: %w", target, err)
	}
	return filepath.Join(resolved, last), nil
}

// resolve returns dir with every symlink resolved. The kubelet's paths seldom hold
// one, which the kernel tells in a single walk; asking about each component, as
// EvalSymlinks does, would be a third of what a repeated publish costs.
func resolve(dir string) (string, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		// A symlink, something that is wrong, or a kernel without the call.
		resolved, err := filepath.EvalSymlinks(dir)
		if path := (*fs.PathError)(nil); err != nil && !errors.As(err, &path) {
			err = fmt.Errorf("%w: %w", unix.ELOOP, err) // it has no error of its own for that
		}
		return resolved, err
	}
	_ = unix.Close(fd) // O_PATH: there is nothing to fail
	// Where no component is a symlink, ".." is what it looks like.
	return filepath.Clean(dir), nil
}
