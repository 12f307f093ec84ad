package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

var (
	// errTorn says that a file changed while it was read, so that what was read may
	// be a state it never had.
	errTorn = errors.New("changed while it was read")
	// errUnreadable says that a file cannot be read, and likely will not be soon.
	errUnreadable = errors.New("cannot be read")
)

// streamAt is the size above which a file is not read into memory as a whole.
const streamAt = 1 << 20

// What is checked has to be read as a whole.
const _ = uint(streamAt - history.MostChecked)

// reader reads the files of a tree into blobs. It is used by one goroutine.
type reader struct {
	blobs Blobs
	// check refuses the content of a file that is not known yet; nil for none that does.
	check  func(name string, content []byte) error
	buffer []byte // Of streamAt bytes and one, taken when needed.
}

// file gives the blob of the regular file name, which looked like seen. known is the
// blob it had, zero for none: the same content is not stored again. The error is
// errTorn when what was read may be no state of the file, errUnreadable when nothing
// could be read; a descent.ErrMount when it is one; or that of the check.
func (r *reader) file(ctx context.Context, dir *descent.Directory, name string, seen descent.Stat, known object.ID) (object.ID, error) {
	fd, err := openRegular(dir, name, seen)
	if err != nil {
		return object.ID{}, err
	}
	defer unix.Close(fd)
	closePages(fd)
	var id object.ID
	var refused error // Of what may have been read by halves.
	if seen.Size > streamAt {
		id, err = r.stream(ctx, fd, seen.Size, known)
	} else {
		id, err = r.whole(fd, name, int(seen.Size), known)
	}
	if errors.Is(err, history.ErrContent) {
		refused, err = err, nil
	}
	if err != nil {
		return object.ID{}, err
	}
	after, err := dir.Look(fd)
	if err != nil {
		return object.ID{}, readError("stat", err)
	}
	if StatOf(after) != StatOf(seen) {
		return object.ID{}, errTorn
	}
	if err := stillThere(dir, name, seen); err != nil {
		return object.ID{}, err
	}
	return id, refused
}

// whole reads a small file.
func (r *reader) whole(fd int, name string, size int, known object.ID) (object.ID, error) {
	if r.buffer == nil {
		r.buffer = make([]byte, streamAt+1)
	}
	// One byte more than expected shows that the file grew.
	n, err := io.ReadFull(handle(fd), r.buffer[:size+1])
	switch {
	case err == nil:
		return object.ID{}, errTorn
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return object.ID{}, err
	case n != size:
		return object.ID{}, errTorn
	}
	id, err := (Hasher{}).Blob(r.buffer[:n])
	if err != nil || id == known {
		return id, err
	}
	if r.check != nil {
		if err := r.check(name, r.buffer[:n]); err != nil {
			return object.ID{}, err
		}
	}
	if id, err = r.blobs.Blob(r.buffer[:n]); err != nil {
		return object.ID{}, fmt.Errorf("store a file: %w", err)
	}
	return id, nil
}

// stream reads a large file in constant memory, twice if it had content before: to
// store what is stored already costs more than to hash it.
func (r *reader) stream(ctx context.Context, fd int, size int64, known object.ID) (object.ID, error) {
	if _, hashes := r.blobs.(Hasher); !hashes && !known.IsZero() {
		from := &source{ctx: ctx, fd: fd}
		id, err := (Hasher{}).BlobFrom(from, size)
		if err := cmpSource(from, size, err); err != nil || id == known {
			return id, err
		}
		if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
			return object.ID{}, readError("seek", err)
		}
	}
	from := &source{ctx: ctx, fd: fd}
	id, err := r.blobs.BlobFrom(from, size)
	return id, cmpSource(from, size, err)
}

// cmpSource is the error of handing a source on: the file's own before the taker's.
func cmpSource(from *source, size int64, err error) error {
	switch {
	case err == nil:
		return nil
	case from.err != nil:
		return from.err
	case from.read != size && (from.ended || from.read > size):
		return errTorn
	}
	return fmt.Errorf("store a file: %w", err)
}

// source reads a file and remembers how that went.
type source struct {
	ctx   context.Context
	fd    int
	read  int64
	ended bool
	err   error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err = s.ctx.Err(); s.err != nil {
		return 0, s.err
	}
	n, err := handle(s.fd).Read(p)
	s.read += int64(n)
	if errors.Is(err, io.EOF) {
		s.ended = true
	} else {
		s.err = err
	}
	return n, err
}

// handle reads an open file without the runtime's poller, which is no use for files.
type handle int

func (h handle) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, err := unix.Read(int(h), p)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, readError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// openRegular opens the regular file name for reading if it is still the one seen.
// First it takes a handle that cannot be read from: to open a FIFO waits for a writer,
// and to open a device may do anything.
func openRegular(dir *descent.Directory, name string, seen descent.Stat) (int, error) {
	path, err := openPath(dir.Fd(), name)
	if err != nil {
		return -1, readError("open", err)
	}
	defer unix.Close(path)
	now, err := dir.Look(path)
	switch {
	case err != nil:
		return -1, readError("stat", err)
	case now.Mount:
		return -1, descent.ErrMount
	case StatOf(now) != StatOf(seen):
		return -1, errTorn
	}
	// A lease that another process took makes an open wait, but for O_NONBLOCK.
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	for {
		fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(path), flags, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return -1, readError("open", err)
		}
		return fd, nil
	}
}

// closePages has what is written to a file through a memory map from now on show in its
// time stamps. The kernel sets them when a page is first written to after it went to the
// disk, and not again before it goes there once more, half a minute later: what a map writes
// in between, after the file was read, nobody would ever notice. A file system without a
// disk, such as tmpfs, has nothing of the kind. It waits for no disk but for pages that are
// on their way there. Where it fails the file is read all the same.
func closePages(fd int) {
	const how = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE
	_ = uninterrupted(func() error { return unix.SyncFileRange(fd, 0, 0, how) })
}

// openPath takes a handle of whatever name is.
func openPath(dir int, name string) (int, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := unix.OpenHow{
		Flags:   flags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for {
		fd, err := unix.Openat2(dir, name, &how)
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			// Linux before 5.6, or a seccomp filter that does not know the call.
			fd, err = unix.Openat(dir, name, flags, 0)
		}
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// link gives the blob of the symbolic link name, which looked like seen.
func (r *reader) link(dir *descent.Directory, name string, seen descent.Stat, known object.ID) (object.ID, error) {
	target, err := readLink(dir.Fd(), name)
	if err != nil {
		return object.ID{}, err
	}
	if err := stillThere(dir, name, seen); err != nil {
		return object.ID{}, err
	}
	id, err := (Hasher{}).Blob(target)
	if err != nil || id == known {
		return id, err
	}
	if id, err = r.blobs.Blob(target); err != nil {
		return object.ID{}, fmt.Errorf("store a link: %w", err)
	}
	return id, nil
}

func readLink(dir int, name string) ([]byte, error) {
	for size := 256; ; size *= 2 {
		target := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, target)
		switch {
		case errors.Is(err, unix.EINVAL):
			return nil, errTorn // It is no link any more.
		case err != nil:
			return nil, readError("read link", err)
		case n < size: // Else there may be more of it.
			return target[:n], nil
		}
	}
}

// stillThere tells that name still is the file that was read, and as it was.
func stillThere(dir *descent.Directory, name string, seen descent.Stat) error {
	now, err := dir.Stat(name)
	switch {
	case err != nil:
		return readError("stat", err)
	case StatOf(now) != StatOf(seen):
		return errTorn
	}
	return nil
}

// readError sorts what the kernel says: of the file, or of the process, which no other
// file will fare better with.
func readError(what string, err error) error {
	switch {
	case descent.Vanished(err), errors.Is(err, unix.EAGAIN):
		return errTorn
	case errors.Is(err, unix.EXDEV):
		return descent.ErrMount
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%s a file: %w", what, err)
	}
	return fmt.Errorf("%s a file: %w: %w", what, errUnreadable, err)
}
