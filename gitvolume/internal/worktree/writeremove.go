package worktree

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// removeOwn removes an unfinished file of the driver's own, whatever it is by now, from
// the directory where the cursor is. That it is gone already is no error.
func removeOwn(ctx context.Context, cursor *Cursor, name string) error {
	dir := cursor.Here()
	err := unlink(dir.Fd(), name)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		child, entered := dir.Enter(name)
		if entered != nil && !descent.Vanished(entered) {
			return fmt.Errorf("remove the unfinished %q: %w", name, errors.Join(err, entered))
		}
		if entered == nil {
			if err := descent.Walk(ctx, child, remover{}); err != nil {
				return fmt.Errorf("remove the unfinished %q: %w", name, err)
			}
			err = removeEmpty(dir.Fd(), name)
		}
	}
	if err != nil && !descent.Vanished(err) {
		return fmt.Errorf("remove the unfinished %q: %w", name, err)
	}
	return nil
}

// remover removes what a descent visits.
type remover struct{}

func (remover) Entry(_ context.Context, dir *descent.Directory, name string) (bool, error) {
	stat, err := dir.Stat(name)
	switch {
	case descent.Vanished(err):
		return false, nil
	case err != nil:
		return false, err
	case stat.Mount:
		return false, fmt.Errorf("remove %q: %w", dir.Path(name), descent.ErrMount)
	case stat.Directory:
		return true, nil
	}
	if err := unlink(dir.Fd(), name); err != nil && !descent.Vanished(err) {
		return false, fmt.Errorf("remove %q: %w", dir.Path(name), err)
	}
	return false, nil
}

func (remover) Leave(dir *descent.Directory, name string) error {
	if err := removeEmpty(dir.Fd(), name); err != nil && !descent.Vanished(err) {
		return fmt.Errorf("remove %q: %w", dir.Path(name), err)
	}
	return nil
}

func (remover) Unreadable(path string, err error) error {
	return fmt.Errorf("remove %q: %w", path, err)
}

// removeKnown removes from the directory where the cursor is what the commit before had
// below s, and nothing else. Each file is looked at once more, as whoever has the
// directory open may have written another by that name.
func (mv *move) removeKnown(s *spot) error {
	cursor := mv.cursor
	for _, child := range s.below {
		if child.from.Mode != 0 {
			if err := mv.removeOne(child); err != nil {
				return fmt.Errorf("remove %q: %w", child.name, err)
			}
		}
		if !child.hadDirectory() {
			continue
		}
		if err := cursor.Enter(child.name); descent.Vanished(err) {
			continue
		} else if err != nil {
			return err
		}
		if err := mv.removeKnown(child); err != nil {
			return err
		}
		if err := cursor.Up(); err != nil {
			return err
		}
		err := removeEmpty(cursor.Here().Fd(), child.name)
		if err != nil && !descent.Vanished(err) && !notEmpty(err) {
			return fmt.Errorf("remove the directory %q: %w", child.name, err)
		}
	}
	return nil
}

// removeOne removes the file, link or submodule that the commit before had at s from the
// directory where the cursor is, if it is still that.
func (mv *move) removeOne(s *spot) error {
	l := mv.looker()
	same, err := l.same(s, "", fromSide)
	if err != nil || !same {
		return err
	}
	dir := mv.cursor.Here()
	err = unlink(dir.Fd(), s.name)
	if errors.Is(err, unix.EISDIR) {
		err = removeEmpty(dir.Fd(), s.name) // A submodule's.
	}
	if descent.Vanished(err) || notEmpty(err) || errors.Is(err, unix.EPERM) {
		return nil
	}
	return err
}
