package gate

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// Kind is what a call does, as far as errors go.
type Kind int

// The kinds of the calls that are known here.
const (
	Opens   Kind = iota + 1 // A descriptor of a file.
	Makes                   // Something new or other in a directory: a name or a file.
	Removes                 // A name.
	Reads
	Writes // Content, or its way to the disk.
	Looks  // At what is known of a file.
	Marks  // A file with a mode, an owner or times.
	Locks
	Mounts
	Watches
	Descriptors // That are of no file.
	Begins      // Something elsewhere: a program, or a connection.
)

type signature struct {
	name  string
	kind  Kind
	about []argument
}

// argument says which arguments of a call name a file, -1 for none: that of a directory's
// descriptor, or of the file's own, and that of a name.
type argument struct{ dir, name int }

func at(dir int) []argument  { return []argument{{dir, dir + 1}} }
func fd(at int) []argument   { return []argument{{at, -1}} }
func path(at int) []argument { return []argument{{-1, at}} }

// both are those of a call that takes two names, each below a directory.
func both() []argument { return []argument{{0, 1}, {2, 3}} }

// Calls are those of the kinds.
func Calls(kinds ...Kind) (numbers []uint32) {
	for number, s := range signatures() {
		if slices.Contains(kinds, s.kind) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// Kind is that of the call; 0: it is not known here.
func (c Call) Kind() Kind { return signatures()[c.Number].kind }

// signatures are by the numbers of the calls.
func signatures() map[uint32]signature {
	all := map[uint32]signature{
		unix.SYS_OPENAT:    {"openat", Opens, at(0)},
		unix.SYS_OPENAT2:   {"openat2", Opens, at(0)},
		unix.SYS_RENAMEAT:  {"renameat", Makes, both()},
		unix.SYS_RENAMEAT2: {"renameat2", Makes, both()},
		unix.SYS_MKDIRAT:   {"mkdirat", Makes, at(0)},
		unix.SYS_MKNODAT:   {"mknodat", Makes, at(0)},
		unix.SYS_SYMLINKAT: {"symlinkat", Makes, at(1)},
		unix.SYS_LINKAT:    {"linkat", Makes, both()},
		unix.SYS_UNLINKAT:  {"unlinkat", Removes, at(0)},

		unix.SYS_READ:       {"read", Reads, fd(0)},
		unix.SYS_PREAD64:    {"pread64", Reads, fd(0)},
		unix.SYS_GETDENTS64: {"getdents64", Reads, fd(0)},
		unix.SYS_READLINKAT: {"readlinkat", Looks, at(0)},
		unix.SYS_STATX:      {"statx", Looks, at(0)},
		unix.SYS_NEWFSTATAT: {"newfstatat", Looks, at(0)},
		unix.SYS_FACCESSAT:  {"faccessat", Looks, at(0)},
		unix.SYS_FSTAT:      {"fstat", Looks, fd(0)},
		unix.SYS_FSTATFS:    {"fstatfs", Looks, fd(0)},

		unix.SYS_WRITE:           {"write", Writes, fd(0)},
		unix.SYS_PWRITE64:        {"pwrite64", Writes, fd(0)},
		unix.SYS_FTRUNCATE:       {"ftruncate", Writes, fd(0)},
		unix.SYS_FALLOCATE:       {"fallocate", Writes, fd(0)},
		unix.SYS_COPY_FILE_RANGE: {"copy_file_range", Writes, fd(2)},
		unix.SYS_FSYNC:           {"fsync", Writes, fd(0)},
		unix.SYS_FDATASYNC:       {"fdatasync", Writes, fd(0)},
		unix.SYS_SYNCFS:          {"syncfs", Writes, fd(0)},

		unix.SYS_FCHMOD:    {"fchmod", Marks, fd(0)},
		unix.SYS_FCHMODAT:  {"fchmodat", Marks, at(0)},
		unix.SYS_FCHOWN:    {"fchown", Marks, fd(0)},
		unix.SYS_FCHOWNAT:  {"fchownat", Marks, at(0)},
		unix.SYS_UTIMENSAT: {"utimensat", Marks, at(0)},
		unix.SYS_FSETXATTR: {"fsetxattr", Marks, fd(0)},
		unix.SYS_FLOCK:     {"flock", Locks, fd(0)},

		unix.SYS_OPEN_TREE:     {"open_tree", Mounts, at(0)},
		unix.SYS_MOUNT_SETATTR: {"mount_setattr", Mounts, at(0)},
		unix.SYS_MOVE_MOUNT:    {"move_mount", Mounts, both()},
		unix.SYS_MOUNT:         {"mount", Mounts, path(1)},
		unix.SYS_UMOUNT2:       {"umount2", Mounts, path(0)},

		unix.SYS_INOTIFY_ADD_WATCH: {"inotify_add_watch", Watches, path(1)},

		unix.SYS_INOTIFY_INIT1: {"inotify_init1", Descriptors, nil},
		unix.SYS_SOCKET:        {"socket", Descriptors, nil},
		unix.SYS_PIPE2:         {"pipe2", Descriptors, nil},
		unix.SYS_ACCEPT4:       {"accept4", Descriptors, nil},

		unix.SYS_CONNECT: {"connect", Begins, nil},
		unix.SYS_EXECVE:  {"execve", Begins, path(0)},
	}
	maps.Copy(all, ofPlatform())
	return all
}
