package leaks

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Adopt makes the calling process the parent of what its descendants leave running when they
// end, so that it stays in the family. It holds for as long as the process lives.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	return nil
}

func mounts(pid int, root string) (map[string]int, error) {
	table, err := os.Open(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return nil, err
	}
	defer table.Close()
	all, err := mountinfo.GetMountsFromReader(table, nil)
	if err != nil {
		return nil, fmt.Errorf("read the mount table of process %d: %w", pid, err)
	}
	found := make(map[string]int)
	for _, m := range all {
		if root == "" || m.Mountpoint == root || strings.HasPrefix(m.Mountpoint, root+"/") {
			found[m.Mountpoint+" of "+m.Root]++
		}
	}
	return found, nil
}

// descendants are the running ones, by their arguments. One that has ended and is not waited
// for has nothing but its number; of an adopted one nobody asks how it ended.
func descendants(root, except int) (map[string]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := make(map[int][]int)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, running := parentOf(pid); running {
			children[parent] = append(children[parent], pid)
		}
	}
	found := make(map[string]int)
	queue := children[root]
	for len(queue) > 0 {
		pid := queue[0]
		queue = append(queue[1:], children[pid]...)
		if pid == except {
			continue
		}
		if arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
			found[strings.TrimSpace(string(bytes.ReplaceAll(arguments, []byte{0}, []byte{' '})))]++
		}
	}
	return found, nil
}

// parentOf is false for a process that has ended.
func parentOf(pid int) (parent int, running bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name, which may hold anything, ends at the last parenthesis.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil
}

func descriptors(pid int) (map[string]int, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := make(map[string]int)
	for _, entry := range entries {
		what, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, entry.Name()))
		if err == nil && bytes.Contains(info, []byte("\nlock:")) {
			what += " (locked)"
		}
		found[withoutNumber(what)]++
	}
	return found, nil
}

// withoutNumber makes "socket" of "socket:[123]", which no other has.
func withoutNumber(what string) string {
	if kind, rest, isKind := strings.Cut(what, ":["); isKind && !strings.HasPrefix(what, "/") {
		return kind + strings.TrimLeft(rest, "0123456789]")
	}
	return what
}

func status(pid int) (anonymous int64, threads int, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	kib, err := field(content, "RssAnon:")
	if err != nil {
		return 0, 0, fmt.Errorf("process %d: %w", pid, err)
	}
	count, err := field(content, "Threads:")
	return int64(kib) << 10, count, err
}

func field(content []byte, name string) (int, error) {
	_, rest, _ := bytes.Cut(content, []byte("\n"+name))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("it has no %s, having ended", strings.TrimSuffix(name, ":"))
	}
	return strconv.Atoi(string(fields[0]))
}
