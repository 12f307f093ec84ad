package history

import (
	"errors"
	"fmt"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

// ErrName says that git cannot hold a name, or that servers which check refuse it.
var ErrName = errors.New("git cannot hold that name")

// CheckName refuses names that git does not hold: empty, ".", "..", with a slash or NUL
// in them, and those that some system takes for ".git" (C28). Any other bytes will do.
// The error is ErrName.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name is empty: %w", ErrName)
	case name == "." || name == "..":
		return fmt.Errorf("%q is no name of its own: %w", name, ErrName)
	case strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("%q holds a slash or NUL: %w", name, ErrName)
	case likeHFS(name, "git") || anyPart(name, likeNTFSGit):
		return fmt.Errorf("%q is taken for .git by some systems: %w", name, ErrName)
	}
	return nil
}

// CheckPath refuses a path to a file of which a part cannot be held.
func CheckPath(path string) error { return CheckKind(path, object.Regular) }

// CheckLink refuses a path at which there cannot be a symlink.
func CheckLink(path string) error { return CheckKind(path, object.Symlink) }

// CheckKind refuses a path of which a part cannot be held, or at which there cannot be
// an entry of that kind: git refuses .gitmodules and .gitattributes, and what some
// system takes for them, as anything but files (.gitattributes may be a symlink).
func CheckKind(path string, mode object.Mode) error {
	for {
		name, rest, more := strings.Cut(path, "/")
		if err := CheckName(name); err != nil {
			return err
		}
		kind := mode
		if more {
			kind = object.Directory
		}
		if !kind.IsFile() && IsModules(name) || !kind.IsFile() && kind != object.Symlink && IsAttributes(name) {
			return fmt.Errorf("%q has to be a file: %w", name, ErrName)
		}
		if !more {
			return nil
		}
		path = rest
	}
}

// IsModules tells whether a name is ".gitmodules" to some system, so that a server
// which checks reads the file.
func IsModules(name string) bool {
	return likeHFS(name, "gitmodules") || anyPart(name, func(part string) bool { return likeNTFS(part, "gitmodules", "gi7eba") })
}

// IsAttributes tells whether a name is ".gitattributes" to some system, so that a
// server which checks reads the file.
func IsAttributes(name string) bool {
	return likeHFS(name, "gitattributes") || likeNTFS(name, "gitattributes", "gi7d29")
}

// anyPart asks of the name and of what follows each backslash, which NTFS takes for a
// slash.
func anyPart(name string, is func(string) bool) bool {
	for {
		if is(name) {
			return true
		}
		at := strings.IndexByte(name, '\\')
		if at < 0 {
			return false
		}
		name = name[at+1:]
	}
}
