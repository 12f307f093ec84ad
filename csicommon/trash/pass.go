package trash

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// deepest is how many levels below the bin a directory is entered. What a
// descent remembers grows with each level, by some 400 bytes at most, and nothing
// bounds how deep an application makes its tree; so what lies deeper is moved up
// to the item's top first.
const deepest = 4096

// pass is the visitor that deletes what it meets and notes what it cannot.
type pass struct {
	item     *item
	pace     *descent.Pace
	top      int // The handle of the item's uppermost directory.
	deleted  int
	raised   int
	failures failures
}

// What follows a pass that left something.
const (
	again       = iota
	othersFirst // Once more around, after the other items.
	waitFirst
)

// next tells what follows the pass, the round-th in a row. Having moved something
// up is no failure, whatever is still left of a tree that deep.
func (p *pass) next(round int) int {
	switch {
	case p.raised > 0 && round >= passes:
		return othersFirst
	case p.raised == 0 && (p.deleted == 0 || round >= passes):
		return waitFirst
	}
	return again
}

// Entry deletes name, or has it entered if it is a directory with something
// in it.
func (p *pass) Entry(ctx context.Context, dir *descent.Directory, name string) (bool, error) {
	if err := p.pace.Step(ctx); err != nil {
		return false, err
	}
	stat, err := dir.Stat(name)
	switch {
	case descent.Vanished(err):
		return false, nil
	case err != nil:
		p.fail(dir.Path(name), err)
		return false, nil
	case stat.Mount:
		p.fail(dir.Path(name), descent.ErrMount)
		return false, nil
	case !stat.Directory:
		p.unlink(dir, name, stat, 0)
		return false, nil
	}
	err = unix.Unlinkat(dir.Fd(), name, unix.AT_REMOVEDIR)
	if err == nil {
		p.count(dir, name, stat)
		return false, nil
	}
	if dir.Depth() >= deepest {
		p.raise(dir, name)
		return false, nil
	}
	// Also when it is not that it is not empty: what is in it may be
	// deletable, and Leave tries again and notes the error.
	return true, nil
}

// Leave deletes the directory name, which is empty if all went well.
func (p *pass) Leave(dir *descent.Directory, name string) error {
	stat, err := dir.Stat(name)
	if err == nil { // Else it vanished; the next pass sees what is there.
		p.unlink(dir, name, stat, unix.AT_REMOVEDIR)
	}
	return nil
}

// raise moves the directory name to the item's top, where this pass or the next
// one finds it. A rename follows no link either and leaves a mount where it is,
// whatever name has become.
func (p *pass) raise(dir *descent.Directory, name string) {
	err := unix.Renameat(dir.Fd(), name, p.top, bareName(p.item.name))
	switch {
	case err == nil:
		p.raised++
	case !descent.Vanished(err):
		p.fail(dir.Path(name), fmt.Errorf("move it up from a depth of %d: %w", deepest, err))
	}
}

// Unreadable notes a directory that cannot be gone through.
func (p *pass) Unreadable(path string, err error) error {
	p.fail(path, err)
	return nil
}

// unlink deletes name. Neither form of unlinkat follows a link or touches a
// mount, whatever name has become since it was looked at.
func (p *pass) unlink(dir *descent.Directory, name string, stat descent.Stat, flags int) {
	err := unix.Unlinkat(dir.Fd(), name, flags)
	switch {
	case err == nil:
		p.count(dir, name, stat)
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		// Not a fault of its own: what is left in it was noted, or was added
		// meanwhile and is the next pass's.
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR):
		// It vanished or was swapped for something else: the next pass's, too.
	default:
		p.fail(dir.Path(name), err)
	}
}

func (p *pass) count(dir *descent.Directory, name string, stat descent.Stat) {
	p.deleted++
	if dir.Depth() > 0 || !isWrapper(name) { // A wrapper is the bin's, not the item's.
		p.item.freed(stat)
	}
}

func (p *pass) fail(path string, err error) {
	p.failures.add(fmt.Errorf("delete %q: %w", path, err))
}
