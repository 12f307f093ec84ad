package watch

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	fdDirectory     = "/proc/self/fd"
	fdinfoDirectory = "/proc/self/fdinfo"
	inotifyLink     = "anon_inode:inotify"
)

// Inode is a directory as stat(2) names it.
type Inode struct{ Device, Number uint64 }

func inodeOf(path string) (Inode, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return Inode{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return Inode{Device: stat.Dev, Number: stat.Ino}, nil
}

// held are directories that the kernel watches for a tree. Its inodes have the
// kernel's numbers for devices, which are those of stat(2) on most filesystems.
type held struct {
	sorted []Inode
	from   Inode // .Device is the root's in stat(2),
	to     uint64
}

// has says whether the directory is watched.
func (h held) has(dir Inode) bool {
	if dir.Device == h.from.Device {
		dir.Device = h.to
	}
	_, found := slices.BinarySearchFunc(h.sorted, dir, compareInodes)
	return found
}

func compareInodes(a, b Inode) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Device, b.Device))
}

// watchesHeld lists what the kernel watches for this process with all of the mask,
// sorted. What it cannot read it takes for not watched.
func watchesHeld() []Inode {
	var inodes []Inode
	for _, name := range descriptors(inotifyLink) {
		// One that was closed meanwhile is no instance of notify's.
		_ = eachLine(filepath.Join(fdinfoDirectory, name), func(line []byte) {
			inode, mask, ok := parseWatch(line)
			if ok && mask&kernelMask == kernelMask {
				inodes = append(inodes, inode)
			}
		})
	}
	slices.SortFunc(inodes, compareInodes)
	return inodes
}

// descriptors lists the process's open files whose link reads so.
func descriptors(link string) []string {
	entries, err := os.ReadDir(fdDirectory)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(fdDirectory, entry.Name()))
		if err == nil && target == link {
			names = append(names, entry.Name())
		}
	}
	return names
}

func eachLine(path string, do func([]byte)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read an open file's facts: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		do(lines.Bytes())
	}
	return lines.Err()
}

// parseWatch reads "inotify wd:3 ino:9e7e sdev:800013 mask:fce ignored_mask:0 ...", all
// in hexadecimal digits.
func parseWatch(line []byte) (inode Inode, mask uint64, ok bool) {
	line, ok = bytes.CutPrefix(line, []byte("inotify "))
	if !ok {
		return Inode{}, 0, false
	}
	number, err := field(line, " ino:")
	device, errDevice := field(line, " sdev:")
	mask, errMask := field(line, " mask:")
	if errors.Join(err, errDevice, errMask) != nil {
		return Inode{}, 0, false
	}
	return Inode{Device: device, Number: number}, mask, true
}

var errField = errors.New("no such number")

func field(line []byte, name string) (uint64, error) {
	_, rest, found := bytes.Cut(line, []byte(name))
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	if !found || len(digits) == 0 || len(digits) > 16 {
		return 0, errField
	}
	var number uint64
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, errField
		}
		number = number<<4 | uint64(c)
	}
	return number, nil
}
