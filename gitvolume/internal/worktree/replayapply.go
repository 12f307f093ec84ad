package worktree

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

func isMount(err error) bool { return errors.Is(err, descent.ErrMount) }

// apply makes the entry name of the directory where the cursor is, of which that is
// known, what is wanted.
func (r *replay) apply(path, name string, known Entry, want metadata.Seen) (bool, error) {
	dir := r.cursor.Here()
	fd, err := openPath(dir.Fd(), name)
	if errors.Is(err, unix.EXDEV) || descent.Vanished(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	seen, err := dir.Look(fd)
	if err != nil {
		return false, fmt.Errorf("stat %q: %w", path, err)
	}
	if seen.Mount {
		return false, nil
	}
	return r.become(fd, path, seen, known, want)
}

// become makes what the handle is open at what is wanted, if it is of that kind and as
// it is remembered. It tells whether owner or group changed.
func (r *replay) become(fd int, path string, seen descent.Stat, known Entry, want metadata.Seen) (bool, error) {
	before := StatOf(seen)
	if !sameKind(seenOf(before).Kind, want.Kind) || known.Stat.isKnown() && !known.Stat.sameMetadata(before) {
		return false, nil
	}
	if err := setMetadata(fd, before, want.Owner, want.Group, want.Mode); err != nil {
		return false, fmt.Errorf("replay %q: %w", path, err)
	}
	changed, err := r.cursor.Here().Look(fd)
	if err != nil {
		return false, fmt.Errorf("stat %q: %w", path, err)
	}
	after := StatOf(changed)
	r.remember(path, before, after, known)
	return before.Owner != after.Owner || before.Group != after.Group, nil
}

func sameKind(disk, wanted metadata.Kind) bool {
	if wanted == metadata.Empty {
		wanted = metadata.Directory
	}
	return disk == wanted
}

// remember takes over what the driver itself changed, so that no scan takes it for the
// application's.
func (r *replay) remember(path string, before, after Stat, known Entry) {
	if before.isDirectory() {
		before, after = bareStat(before), bareStat(after)
	}
	if known.Stat == before && before != after {
		known.Stat = after
		r.edits = append(r.edits, Edit{path, known})
	}
}

// bareStat is directoryStat of a Stat.
func bareStat(s Stat) Stat {
	return Stat{Inode: s.Inode, Mode: s.Mode, Owner: s.Owner, Group: s.Group}
}

// setMetadata gives owner, group and mode to what the handle is open at, which looked so
// before. The mode is last: the kernel takes setuid and setgid off a file whose owner
// changes. A link has no mode.
func setMetadata(fd int, before Stat, owner, group, mode uint32) error {
	now := before.Mode & 0o7777
	if before.Owner != owner || before.Group != group {
		err := unix.Fchownat(fd, "", int(owner), int(group), unix.AT_EMPTY_PATH)
		if mayNotGive(err) && before.Group != group {
			err = unix.Fchownat(fd, "", -1, int(group), unix.AT_EMPTY_PATH)
		}
		if err := given(err); err != nil {
			return fmt.Errorf("set owner and group: %w", err)
		}
		now = ^mode // It is not known what the kernel left of it.
	}
	if before.isLink() || now == mode {
		return nil
	}
	if err := permitted(unix.Chmod(byHandle(fd), mode)); err != nil {
		return fmt.Errorf("set the mode: %w", err)
	}
	return nil
}

// make makes the directory name, at path, in dir unless something is there. It tells
// whether it did.
func (r *replay) make(dir *descent.Directory, path, name string) (bool, error) {
	err := uninterrupted(func() error { return unix.Mkdirat(dir.Fd(), name, 0o700) })
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EPERM) {
		return false, nil // In what is immutable nothing can be made.
	}
	if err != nil {
		return false, fmt.Errorf("make the directory %q: %w", path, err)
	}
	self, err := dir.Self()
	if err != nil {
		return false, fmt.Errorf("stat the directory of %q: %w", path, err)
	}
	want := r.Fresh.Replayed(r.Record.Entry(path), metadata.Empty, object.Directory, seenOf(StatOf(self)))
	if _, err := r.apply(path, name, Entry{Mode: object.Directory}, want); err != nil {
		return false, err
	}
	made, err := dir.Stat(name)
	if err == nil && made.Directory {
		r.edits = append(r.edits, Edit{path, Entry{Stat: directoryStat(made), Mode: object.Directory}})
	}
	return true, nil
}
