//go:build soak

package soak

import (
	"os"

	"golang.org/x/sys/unix"
)

// walk goes through a tree, however deep, without following a link, and calls see for the
// top and each entry. It is false when something could not be read.
func walk(top string, see func(unix.Stat_t)) bool {
	fd, err := unix.Open(top, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	queue := []*os.File{os.NewFile(uintptr(fd), top)}
	defer func() {
		for _, dir := range queue {
			_ = dir.Close()
		}
	}()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return false
	}
	see(stat)
	for ; len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		names, err := dir.Readdirnames(-1)
		if err != nil {
			return false
		}
		for _, name := range names {
			if err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return false
			}
			see(stat)
			if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			fd, err := unix.Openat(int(dir.Fd()), name, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return false
			}
			queue = append(queue, os.NewFile(uintptr(fd), name))
		}
		_ = dir.Close()
	}
	return true
}

// count counts what is in a tree, with its top; -1 for one that cannot be read.
func count(top string) int {
	total := 0
	if !walk(top, func(unix.Stat_t) { total++ }) {
		return -1
	}
	return total
}

// size is what a tree takes of the disk, in bytes, hard links once.
func size(top string) float64 {
	total, seen := int64(0), make(map[uint64]bool)
	if !walk(top, func(stat unix.Stat_t) {
		if !seen[stat.Ino] {
			seen[stat.Ino] = true
			total += stat.Blocks * 512
		}
	}) {
		return -1
	}
	return float64(total)
}
