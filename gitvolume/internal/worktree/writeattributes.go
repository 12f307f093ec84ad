package worktree

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// attributes are what a file has besides its content.
type attributes struct {
	owner, group uint32
	mode         uint32
	extended     []extended
	// replaces says that the extended ones are all there may be: what the directory
	// gave the file by default goes.
	replaces bool
}

// extended is one extended attribute. An ACL is one, too.
type extended struct {
	name  string
	value []byte
}

const (
	labelName = "security.selinux"
	aclName   = "system.posix_acl_access"
)

// aboutContent tells an extended attribute that is about the very bytes of a file, so
// that the kernel itself drops it when they are written.
func aboutContent(name string) bool {
	return name == "security.capability" || name == "security.ima" || name == "security.evm"
}

// attributesFor are what a new file of that kind gets in the directory.
func attributesFor(mode object.Mode, fresh metadata.Fresh, parent descent.Stat) attributes {
	seen := fresh.Replayed(metadata.Entry{}, kindOf(mode), mode, metadata.Seen{Owner: parent.Owner, Group: parent.Group})
	return attributes{owner: seen.Owner, group: seen.Group, mode: seen.Mode}
}

// attributesOf are those of the file name, which looks like seen, for the one of that
// kind that replaces it: owner and group, and if both are regular files the mode, with
// git's executable bit, and the extended attributes.
func attributesOf(dir *descent.Directory, name string, seen descent.Stat, mode object.Mode, fresh metadata.Fresh) (attributes, error) {
	a := attributesFor(mode, fresh, seen)
	if !StatOf(seen).isRegular() || !mode.IsFile() {
		return a, nil
	}
	entry := metadata.Entry{Kind: metadata.File, Mode: metadata.Set(seen.Mode & 0o7777)}
	a.mode = fresh.Replayed(entry, metadata.File, mode, metadata.Seen{}).Mode
	a.replaces = true
	fd, err := openPath(dir.Fd(), name)
	if err != nil {
		return a, readError("open", err)
	}
	defer unix.Close(fd)
	a.extended, err = extendedOf(fd)
	return a, err
}

// extendedOf reads the extended attributes of what the handle is open at.
func extendedOf(fd int) ([]extended, error) {
	path := byHandle(fd)
	names, err := grown(func(to []byte) (int, error) { return unix.Listxattr(path, to) })
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, readError("list the attributes of", err)
	}
	var all []extended
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if name == "" || aboutContent(name) {
			continue
		}
		value, err := grown(func(to []byte) (int, error) { return unix.Getxattr(path, name, to) })
		switch {
		case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOTSUP):
			// It is gone, or not for this process to see.
		case err != nil:
			return nil, readError("read an attribute of", err)
		default:
			all = append(all, extended{name, value})
		}
	}
	return all, nil
}

// grown reads something that may be larger than expected, and may still be growing.
func grown(read func(to []byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 4 {
		to := make([]byte, size)
		n, err := read(to)
		if !errors.Is(err, unix.ERANGE) || size > 1<<20 {
			return to[:max(n, 0)], err
		}
	}
}

// give gives them to the new file that the handle is open at. The owner is first: the
// kernel takes setuid and setgid off a file whose owner changes, and an ACL is part of
// the mode.
func (a attributes) give(fd int) error {
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if now.Uid != a.owner || now.Gid != a.group {
		if err := a.giveOwner(fd); err != nil {
			return err
		}
	}
	if err := a.giveExtended(fd); err != nil {
		return err
	}
	if err := permitted(unix.Fchmod(fd, a.mode)); err != nil {
		return fmt.Errorf("set the mode: %w", err)
	}
	return nil
}

// giveOwner gives the owner and the group. An ordinary user may often give the group
// alone.
func (a attributes) giveOwner(fd int) error {
	err := unix.Fchown(fd, int(a.owner), int(a.group))
	if mayNotGive(err) {
		err = unix.Fchown(fd, -1, int(a.group))
	}
	if err := given(err); err != nil {
		return fmt.Errorf("set owner and group: %w", err)
	}
	return nil
}

func (a attributes) giveExtended(fd int) error {
	hasACL := false
	for _, x := range a.extended {
		hasACL = hasACL || x.name == aclName
		err := unix.Fsetxattr(fd, x.name, x.value, 0)
		if err := permitted(err); err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("set the attribute %q: %w", x.name, err)
		}
	}
	if a.replaces && !hasACL {
		err := unix.Fremovexattr(fd, aclName)
		if err := permitted(err); err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.ENODATA) {
			return fmt.Errorf("remove the default ACL: %w", err)
		}
	}
	return nil
}

// kindOf is what the metadata calls an entry of a tree.
func kindOf(mode object.Mode) metadata.Kind {
	switch mode {
	case object.Symlink:
		return metadata.Link
	case object.Directory:
		return metadata.Directory
	case object.Submodule:
		return metadata.Empty
	}
	return metadata.File
}
