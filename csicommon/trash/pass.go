package trash

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// pass is the visitor that deletes what it meets and notes what it cannot.
type pass struct {
	item     *item
	pace     *descent.Pace
	deleted  int
	failures failures
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
		p.count(stat)
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
		p.count(stat)
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		// Not a fault of its own: what is left in it was noted, or was added
		// meanwhile and is the next pass's.
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR):
		// It vanished or was swapped for something else: the next pass's, too.
	default:
		p.fail(dir.Path(name), err)
	}
}

func (p *pass) count(stat descent.Stat) {
	p.deleted++
	p.item.freed(stat)
}

func (p *pass) fail(path string, err error) {
	p.failures.add(fmt.Errorf("delete %q: %w", path, err))
}
