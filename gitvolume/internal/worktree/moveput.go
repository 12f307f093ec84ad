package worktree

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// putAll puts the units in place, those that take something away last: what is moved by
// upstream is in two places for a moment, and never in none. lost are the paths where
// the application was quicker.
func (mv *move) putAll(units []*unit) (lost []string, err error) {
	for _, takesAway := range []bool{false, true} {
		for _, u := range units {
			if (u.will == nothing) != takesAway {
				continue
			}
			done, err := mv.put(u)
			if err != nil {
				return nil, fmt.Errorf("put %q in place: %w", u.path(), err)
			}
			if !done {
				lost = append(lost, u.path())
			}
		}
	}
	return lost, nil
}

// put puts a unit in place, and tells whether it is.
func (mv *move) put(u *unit) (bool, error) {
	if err := mv.ctx.Err(); err != nil {
		return false, err
	}
	dir, err := mv.enter(u.dir)
	if errors.Is(err, errVanished) {
		// What was staged in it went with it. What was to be removed is removed.
		mv.strayed = mv.strayed || u.will != nothing
		return u.will == nothing, nil
	}
	if err != nil {
		return false, err
	}
	mv.touched[u.dir] = true
	mv.before("put", u.path())
	fd, name, beside := dir.Fd(), u.spot.name, mv.intent.unfinished(ready, u.spot.name)
	switch {
	case u.was == nothing:
		err = renameNew(fd, beside, name)
	case u.will == nothing:
		err = renameNew(fd, name, beside)
		if descent.Vanished(err) {
			return true, nil
		}
	default:
		err = exchange(fd, beside, name)
	}
	switch {
	case u.will == nothing && errors.Is(err, unix.EPERM):
		return false, nil // The application has just made it immutable.
	case descent.Vanished(err), u.was == nothing && errors.Is(err, unix.EEXIST), errors.Is(err, unix.EPERM):
		return false, mv.dropStaged(beside)
	case err != nil:
		return false, err
	}
	mv.before("look", u.path())
	if u.was != nothing {
		if done, err := mv.settle(u, beside); err != nil || !done {
			return false, err
		}
	}
	mv.remember(u)
	return true, nil
}

// dropStaged removes what was staged beside its place, in the directory where the cursor
// is. If it is not there, it is with the directory that was there before.
func (mv *move) dropStaged(beside string) error {
	if _, err := mv.cursor.Here().Stat(beside); descent.Vanished(err) {
		mv.strayed = true
		return nil
	}
	return removeOwn(mv.ctx, mv.cursor, beside)
}

// settle looks at what came out of a unit's place, and removes it or puts it back.
func (mv *move) settle(u *unit, beside string) (bool, error) {
	same, seen, err := mv.isOf(u, beside)
	if err != nil {
		return false, err
	}
	if !same {
		return false, mv.putBack(u, beside)
	}
	if u.was == directory {
		return mv.removeDirectory(u, beside)
	}
	if err := mv.follow(u, beside, seen); err != nil {
		return false, err
	}
	mv.before("remove", u.path())
	if err := unlink(mv.cursor.Here().Fd(), beside); err != nil && !descent.Vanished(err) {
		return false, fmt.Errorf("remove what was replaced: %w", err)
	}
	return true, nil
}

// isOf tells whether what came out is of the commit before.
func (mv *move) isOf(u *unit, beside string) (bool, descent.Stat, error) {
	seen, err := mv.cursor.Here().Stat(beside)
	if err != nil {
		return false, seen, fmt.Errorf("look at what was replaced: %w", err)
	}
	l := mv.looker()
	if u.was == leaf {
		if seen.Directory {
			return false, seen, nil
		}
		found, err := l.look(beside, "", seen, u.spot.from)
		return found.Mode != 0 && found.Side == u.spot.from, seen, err
	}
	if !seen.Directory || seen.Mount {
		return false, seen, nil
	}
	if err := mv.cursor.Enter(beside); err != nil {
		return false, seen, enterError(err)
	}
	same, err := l.only(u.spot, "", fromSide)
	if err != nil {
		return false, seen, err
	}
	return same, seen, mv.cursor.Up()
}

// removeDirectory removes a directory that came out. If the application put something
// into it meanwhile, it is put back with that.
func (mv *move) removeDirectory(u *unit, beside string) (bool, error) {
	if err := mv.cursor.Enter(beside); err != nil {
		return false, enterError(err)
	}
	mv.before("remove", u.path())
	if err := mv.removeKnown(u.spot); err != nil {
		return false, err
	}
	if err := mv.cursor.Up(); err != nil {
		return false, err
	}
	err := removeEmpty(mv.cursor.Here().Fd(), beside)
	if notEmpty(err) {
		return false, mv.putBack(u, beside)
	}
	if err != nil && !descent.Vanished(err) {
		return false, fmt.Errorf("remove the directory that was replaced: %w", err)
	}
	return true, nil
}

// putBack puts back what the application wrote. What it wrote in that very moment
// again, to what had been put in its place, is left at the place, and what it wrote first
// beside it: nobody but the application could tell which of them counts.
func (mv *move) putBack(u *unit, beside string) error {
	fd, name := mv.cursor.Here().Fd(), u.spot.name
	mv.before("back", u.path())
	if u.will != nothing {
		err := exchange(fd, beside, name)
		if err == nil {
			return mv.dropOurs(u, beside)
		}
		if !descent.Vanished(err) {
			return fmt.Errorf("put back what the application wrote: %w", err)
		}
	}
	err := renameNew(fd, beside, name)
	if errors.Is(err, unix.EEXIST) {
		return mv.keep(u.dir, beside)
	}
	if err != nil && !descent.Vanished(err) {
		return fmt.Errorf("put back what the application wrote: %w", err)
	}
	return nil
}

// dropOurs removes what was staged, which is beside its place again.
func (mv *move) dropOurs(u *unit, beside string) error {
	ours, err := mv.isOurs(u, beside)
	if err != nil {
		return err
	}
	if ours {
		return removeOwn(mv.ctx, mv.cursor, beside)
	}
	if err := exchange(mv.cursor.Here().Fd(), beside, u.spot.name); err != nil && !descent.Vanished(err) {
		return fmt.Errorf("put back what the application wrote: %w", err)
	}
	return mv.keep(u.dir, beside)
}

// keep leaves to the application what it wrote first of two, under a name that is for
// nobody else, in the directory at path where the cursor is.
func (mv *move) keep(path, beside string) error {
	kept := keptName(beside)
	err := renameNew(mv.cursor.Here().Fd(), beside, kept)
	for n := 2; errors.Is(err, unix.EEXIST) && mv.ctx.Err() == nil; n++ {
		kept = keptName(beside) + "-" + strconv.Itoa(n)
		err = renameNew(mv.cursor.Here().Fd(), beside, kept)
	}
	if descent.Vanished(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep what the application wrote: %w", err)
	}
	mv.moved.Late = append(mv.moved.Late, join(path, kept))
	return nil
}

// isOurs tells whether the entry name is what was staged, and as it was staged.
func (mv *move) isOurs(u *unit, name string) (bool, error) {
	seen, err := mv.cursor.Here().Stat(name)
	if err != nil {
		return false, fmt.Errorf("look at what was staged: %w", err)
	}
	if u.will == leaf {
		return u.staged.isStill(StatOf(seen)), nil
	}
	if !seen.Directory || seen.Mount {
		return false, nil
	}
	if err := mv.cursor.Enter(name); err != nil {
		return false, enterError(err)
	}
	l := mv.looker()
	ours, err := l.only(u.spot, "", toSide)
	if err != nil {
		return false, err
	}
	return ours, mv.cursor.Up()
}

// isStill tells whether a file is as it was, but for its name: another name is another
// time of change.
func (d onDisk) isStill(now Stat) bool {
	now.Changed = d.stat.Changed
	return d.stat == now
}

// remember notes what is at the unit's place now.
func (mv *move) remember(u *unit) {
	for _, e := range u.edits {
		mv.moved.Written = append(mv.moved.Written, e.Path)
	}
	mv.edits = append(mv.edits, u.edits...)
	if u.will != leaf {
		return
	}
	mv.moved.Written = append(mv.moved.Written, u.path())
	seen, err := mv.cursor.Here().Stat(u.spot.name)
	if err == nil && u.staged.isStill(StatOf(seen)) {
		e := Entry{Stat: StatOf(seen), Mode: u.staged.Mode, Blob: u.staged.ID, Racy: u.staged.racy}
		mv.edits = append(mv.edits, Edit{u.path(), e})
	}
}
