package worktree

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// follow gives the successor of a file what the application changed of that one's owner
// or mode since the successor was made.
func (mv *move) follow(u *unit, beside string, seen descent.Stat) error {
	now := StatOf(seen)
	if u.will != leaf || now.sameMetadata(u.looked) || !u.spot.to.Mode.IsFile() {
		return nil
	}
	dir := mv.cursor.Here()
	a, err := attributesOf(dir, beside, seen, u.spot.to.Mode, mv.Fresh)
	if err != nil {
		return err
	}
	successor, err := dir.Stat(u.spot.name)
	if err != nil || !u.staged.isStill(StatOf(successor)) {
		return nil // The application replaced it.
	}
	fd, err := openRegular(dir, u.spot.name, successor)
	if errors.Is(err, errTorn) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := a.give(fd); err != nil {
		return fmt.Errorf("give a file what its predecessor has: %w", err)
	}
	changed, err := dir.Look(fd)
	if err != nil {
		return fmt.Errorf("stat a file: %w", err)
	}
	u.staged.stat.Mode, u.staged.stat.Owner, u.staged.stat.Group = changed.Mode, changed.Owner, changed.Group
	return nil
}

// removeEmptied removes the directories in which nothing is left, if upstream has them no
// more, and tells what is to be forgotten.
func (mv *move) removeEmptied(emptied []string) ([]Edit, error) {
	var removed []Edit
	for _, path := range emptied {
		gone, err := mv.removeOneEmptied(path)
		if err != nil {
			return nil, fmt.Errorf("remove the directory %q: %w", path, err)
		}
		if gone {
			removed = append(removed, Edit{Path: path})
		}
	}
	return removed, nil
}

// removeVacated removes the directories that the application removed elsewhere, but for
// those that it made or changed here, and tells what is to be forgotten.
func (mv *move) removeVacated() ([]Edit, error) {
	var known []string
	for _, path := range mv.Vacated {
		parent, name := split(path)
		dir, err := mv.enter(parent)
		if errors.Is(err, errVanished) {
			continue
		}
		if err != nil {
			return nil, err
		}
		seen, err := dir.Stat(name)
		if err != nil && !descent.Vanished(err) {
			return nil, fmt.Errorf("look at %q: %w", path, err)
		}
		if err == nil && seen.Directory && !seen.Mount && directoryStat(seen) == mv.Memory.Entry(path).Stat {
			known = append(known, path)
		}
	}
	return mv.removeEmptied(known)
}

func (mv *move) removeOneEmptied(path string) (bool, error) {
	if err := mv.ctx.Err(); err != nil {
		return false, err
	}
	parent, name := split(path)
	dir, err := mv.enter(parent)
	if errors.Is(err, errVanished) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if empty, err := isEmpty(dir, name); err != nil || !empty {
		return false, err
	}
	// It may be empty because the application removed what upstream has still.
	has, err := mv.Source.Find(mv.intent.To, path)
	if err == nil && (has.Mode == object.Directory || has.Mode == object.Submodule) {
		return false, nil
	}
	if err != nil && !errors.Is(err, history.ErrNotFound) {
		return false, err
	}
	err = removeEmpty(dir.Fd(), name)
	if notEmpty(err) || descent.Vanished(err) || errors.Is(err, unix.EPERM) {
		return false, nil // It is immutable in the last case, or what it is in.
	}
	mv.touched[parent] = true
	return err == nil, err
}

// isEmpty tells whether name is a directory without an entry.
func isEmpty(dir *descent.Directory, name string) (bool, error) {
	child, err := dir.Enter(name)
	if descent.Vanished(err) || errors.Is(err, descent.ErrMount) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer child.Close()
	_, err = child.Next()
	if errors.Is(err, descent.ErrEnd) {
		return true, nil
	}
	return false, err
}

// syncTouched makes the renames durable.
func (mv *move) syncTouched() error {
	if len(mv.touched) > separate {
		return mv.syncAll()
	}
	for path := range mv.touched {
		dir, err := mv.enter(path)
		if errors.Is(err, errVanished) {
			continue
		}
		if err == nil {
			err = syncHandle(dir.Fd())
		}
		if err != nil {
			return fmt.Errorf("make the directory %q durable: %w", path, err)
		}
	}
	return nil
}
