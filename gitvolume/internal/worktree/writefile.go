package worktree

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// writer makes files that nobody has a name for yet.
type writer struct {
	source Source
	fresh  metadata.Fresh
	label  string // Of SELinux, empty for none.
	// separately is how many files more are made durable one by one; unsynced tells that
	// there are others.
	separately int
	unsynced   bool
	buffer     []byte
	// room is the Mover's Room, and spent what was written since it was asked last.
	room  func() error
	spent int64
}

// errVanished says that a directory in which something was to be made is gone.
var errVanished = errors.New("the directory is gone")

// file makes the file name, complete, with those attributes.
func (w *writer) file(dir *descent.Directory, name string, side history.Side, a attributes) (onDisk, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	var fd int
	err := uninterrupted(func() (err error) {
		fd, err = unix.Openat(dir.Fd(), name, flags, 0o600)
		return err
	})
	if err != nil {
		return onDisk{}, makeError("make a file", err)
	}
	made, err := w.fill(dir, fd, side, a)
	if closed := unix.Close(fd); err == nil && closed != nil && !errors.Is(closed, unix.EINTR) {
		err = fmt.Errorf("close a file: %w", closed)
	}
	return made, err
}

func (w *writer) fill(dir *descent.Directory, fd int, side history.Side, a attributes) (onDisk, error) {
	if err := w.content(fd, side.ID); err != nil {
		return onDisk{}, err
	}
	if err := a.give(fd); err != nil {
		return onDisk{}, fmt.Errorf("give a file what it has to have: %w", err)
	}
	if err := w.relabel(fd); err != nil {
		return onDisk{}, err
	}
	// The kernel stamps in steps of some milliseconds. With a stamp off those steps, a
	// write that comes right after is seen, and the next scan need not read the file.
	now := time.Now().UnixNano()
	times := []unix.Timespec{unix.NsecToTimespec(now), unix.NsecToTimespec(now)}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, byHandle(fd), times, 0); err != nil {
		return onDisk{}, fmt.Errorf("stamp a file: %w", err)
	}
	if err := w.sync(fd); err != nil {
		return onDisk{}, err
	}
	seen, err := dir.Look(fd)
	if err != nil {
		return onDisk{}, fmt.Errorf("stat a file: %w", err)
	}
	stat := StatOf(seen)
	return onDisk{Side: side, stat: stat, racy: stat.Modified != now}, nil
}

// sync makes what was made durable, or leaves that to one call for all.
func (w *writer) sync(fd int) error {
	if w.separately == 0 {
		w.unsynced = true
		return nil
	}
	w.separately--
	if err := syncHandle(fd); err != nil {
		return fmt.Errorf("make a file durable: %w", err)
	}
	return nil
}

// content writes the blob.
func (w *writer) content(fd int, blob object.ID) error {
	from, size, err := w.source.Reader(blob)
	if err != nil {
		return fmt.Errorf("read the commit's file: %w", err)
	}
	defer from.Close()
	if w.buffer == nil {
		w.buffer = make([]byte, 256<<10)
	}
	n, err := io.CopyBuffer(spender{w, handleWriter(fd)}, onlyReader{from}, w.buffer)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("write a file of %d bytes: %w", size, err)
	}
	return nil
}

// onlyReader hides what else a reader can do, so that the given buffer is used.
type onlyReader struct{ io.Reader }

// handleWriter writes to an open file without the runtime's poller, which is no use for
// files.
type handleWriter int

func (h handleWriter) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Write(int(h), p[done:])
		if err != nil && !errors.Is(err, unix.EINTR) {
			return done, err
		}
		done += max(n, 0)
	}
	return done, nil
}

// link makes the symbolic link name.
func (w *writer) link(dir *descent.Directory, name string, side history.Side, a attributes) (onDisk, error) {
	target, err := w.source.Content(side.ID)
	if err != nil {
		return onDisk{}, fmt.Errorf("read the commit's link: %w", err)
	}
	err = uninterrupted(func() error { return unix.Symlinkat(string(target), dir.Fd(), name) })
	if err != nil {
		return onDisk{}, makeError("make a link", err)
	}
	fd, err := openPath(dir.Fd(), name)
	if err != nil {
		return onDisk{}, makeError("open a link", err)
	}
	defer unix.Close(fd)
	stat, err := giveLink(dir, fd, a)
	if err != nil {
		return onDisk{}, err
	}
	return onDisk{Side: side, stat: stat, racy: stat.Racy(time.Now())}, w.relabelLink(dir, name)
}

// giveLink gives owner and group to the new link that the handle is open at, unless another
// file took its name meanwhile: whose that is, is not for the driver to give away.
func giveLink(dir *descent.Directory, fd int, a attributes) (Stat, error) {
	seen, err := dir.Look(fd)
	if err != nil {
		return Stat{}, fmt.Errorf("stat a link: %w", err)
	}
	if !StatOf(seen).isLink() {
		return Stat{}, fmt.Errorf("make a link: another file has its name: %w", errVanished)
	}
	if seen.Owner == a.owner && seen.Group == a.group {
		return StatOf(seen), nil
	}
	err = unix.Fchownat(fd, "", int(a.owner), int(a.group), unix.AT_EMPTY_PATH)
	if err := given(err); err != nil {
		return Stat{}, fmt.Errorf("set a link's owner and group: %w", err)
	}
	if seen, err = dir.Look(fd); err != nil {
		return Stat{}, fmt.Errorf("stat a link: %w", err)
	}
	return StatOf(seen), nil
}

// leaf makes the file or link name.
func (w *writer) leaf(dir *descent.Directory, name string, side history.Side, a attributes) (onDisk, error) {
	if err := w.spend(perEntry); err != nil {
		return onDisk{}, err
	}
	if side.Mode == object.Symlink {
		return w.link(dir, name, side, a)
	}
	return w.file(dir, name, side, a)
}

// directory makes the directory name, and gives it what the directory it is in has. It
// is closed to all others until then.
func (w *writer) directory(cursor *Cursor, name string, parent descent.Stat) error {
	if err := w.spend(perEntry); err != nil {
		return err
	}
	dir := cursor.Here()
	if err := uninterrupted(func() error { return unix.Mkdirat(dir.Fd(), name, 0o700) }); err != nil {
		return makeError("make a directory", err)
	}
	child, err := dir.Enter(name)
	if err != nil {
		return makeError("open a directory", err)
	}
	defer child.Close()
	if err := attributesFor(object.Directory, w.fresh, parent).give(child.Fd()); err != nil {
		return fmt.Errorf("give a directory what it has to have: %w", err)
	}
	return w.relabel(child.Fd())
}

// relabel gives what the handle is open at the SELinux label.
func (w *writer) relabel(fd int) error {
	if w.label == "" {
		return nil
	}
	if err := unix.Fsetxattr(fd, labelName, []byte(w.label), 0); err != nil {
		return fmt.Errorf("set the SELinux label: %w", err)
	}
	return nil
}

func (w *writer) relabelLink(dir *descent.Directory, name string) error {
	if w.label == "" {
		return nil
	}
	// No call takes a handle of a link; the directory's is a path of one name more.
	if err := unix.Lsetxattr(byHandle(dir.Fd())+"/"+name, labelName, []byte(w.label), 0); err != nil {
		return fmt.Errorf("set the SELinux label of a link: %w", err)
	}
	return nil
}

// makeError sorts what the kernel says when something is made.
func makeError(what string, err error) error {
	if descent.Vanished(err) {
		return fmt.Errorf("%s: %w: %w", what, errVanished, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
