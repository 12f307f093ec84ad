package gate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Call is a system call that waits at a gate.
type Call struct {
	Number    uint32
	Thread    int // Who calls.
	arguments [6]uint64
}

// IsOf tells whether a thread of the process calls, and not one of a child of it.
func (c Call) IsOf(pid int) bool {
	_, err := os.Lstat(fmt.Sprintf("/proc/%d/task/%d", pid, c.Thread))
	return err == nil
}

// Name is that of the call.
func (c Call) Name() string { return signatures()[c.Number].name }

// Paths are what the call is about: the files that it names, or those whose descriptors it
// has. A call that is about none has none, and so has one of a caller that is gone.
func (c Call) Paths() (paths []string) {
	for _, a := range signatures()[c.Number].about {
		path := ""
		if a.name >= 0 {
			path = c.text(c.arguments[a.name])
		}
		if a.dir >= 0 && !filepath.IsAbs(path) {
			path = filepath.Join(c.descriptor(int32(c.arguments[a.dir])), path)
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(c.link("cwd"), path)
		}
		paths = append(paths, path)
	}
	return paths
}

// descriptor is the path of an open file.
func (c Call) descriptor(fd int32) string {
	if fd == unix.AT_FDCWD {
		return c.link("cwd")
	}
	return c.link(fmt.Sprintf("fd/%d", fd))
}

func (c Call) link(name string) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", c.Thread, name))
	if err != nil {
		return ""
	}
	return path
}

// text reads a string of the caller's, which may end where its memory does.
func (c Call) text(address uint64) string {
	var all []byte
	const page = 4096
	for address != 0 && len(all) < unix.PathMax {
		part := make([]byte, page-address%page)
		local := []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}}
		n, err := unix.ProcessVMReadv(c.Thread, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(part)}}, 0)
		if err != nil {
			break
		}
		if end := bytes.IndexByte(part[:n], 0); end >= 0 {
			return string(append(all, part[:end]...))
		}
		all, address = append(all, part[:n]...), address+uint64(n)
	}
	return string(all)
}
