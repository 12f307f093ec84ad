package gate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Faults are the errors that Fault makes.
func Faults() []syscall.Errno {
	return []syscall.Errno{unix.ENOSPC, unix.EIO, unix.EMFILE, unix.EINTR}
}

// kinds are those of the calls that can fail so on some file system.
func kinds(errno syscall.Errno) []Kind {
	switch errno {
	case unix.ENOSPC:
		return []Kind{Opens, Makes, Writes, Marks, Mounts, Watches}
	case unix.EIO:
		return []Kind{Opens, Makes, Removes, Reads, Writes, Looks, Marks, Mounts}
	case unix.EMFILE:
		return []Kind{Opens, Mounts, Descriptors}
	case unix.EINTR:
		return []Kind{Opens, Reads, Writes, Locks}
	}
	return nil
}

// FaultyCalls are those that Fault can have fail, of any errors.
func FaultyCalls() []uint32 {
	var all []Kind
	for _, errno := range Faults() {
		all = append(all, kinds(errno)...)
	}
	return Calls(all...)
}

// Fault has one call fail: that which is the At-th, from 1, of those that can fail so and
// are about a file at or below one of the directories Within, or about none.
type Fault struct {
	Errno  syscall.Errno
	At     int
	Within []string
	// Pid is the process whose calls count, those of its children too unless they are about
	// no file.
	Pid func() int

	mu     sync.Mutex
	counts map[syscall.Errno]int
	done   string
	ofPid  bool
}

// Decide is a gate's.
func (f *Fault) Decide(c Call) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	paths := c.Paths()
	if len(paths) == 0 && !c.IsOf(f.Pid()) {
		return 0
	}
	if len(paths) > 0 && !slices.ContainsFunc(paths, f.isWithin) {
		return 0
	}
	if f.counts == nil {
		f.counts = map[syscall.Errno]int{}
	}
	for _, errno := range Faults() {
		if !slices.Contains(kinds(errno), c.Kind()) {
			continue
		}
		f.counts[errno]++
		if errno == f.Errno && f.counts[errno] == f.At {
			f.ofPid = c.IsOf(f.Pid())
			f.done = fmt.Sprintf("%s of %q", c.Name(), paths)
			if !f.ofPid {
				f.done += " in a child"
			}
			return errno
		}
	}
	return 0
}

func (f *Fault) isWithin(path string) bool {
	return slices.ContainsFunc(f.Within, func(dir string) bool {
		below, err := filepath.Rel(dir, path)
		return err == nil && below != ".." && !strings.HasPrefix(below, "../")
	})
}

// Done is the call that failed, in words; empty: none did yet. IsOwn tells whether it was
// the process's, and not a child's.
func (f *Fault) Done() (call string, isOwn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done, f.ofPid
}

// Counts are how many calls there were that can fail with each error.
func (f *Fault) Counts() map[syscall.Errno]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[syscall.Errno]int{}
	for errno, n := range f.counts {
		counts[errno] = n
	}
	return counts
}
