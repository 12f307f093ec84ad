package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Volatile tells why a reboot would empty the store, so that no writeable volume may be
// on it: what was not pushed would be lost. It is empty for a store that stays. Whether
// an overlay stays is known only where the directory that it writes to can be seen from
// here; one that cannot counts as a disk.
func (s *Store) Volatile() (reason string, err error) {
	kind, err := fileSystem(s.dir.Path())
	if err != nil {
		return "", err
	}
	if name := inMemory(kind); name != "" {
		return fmt.Sprintf("the store %q is on a %s, which a reboot empties: put it on a disk", s.dir.Path(), name), nil
	}
	if kind != unix.OVERLAYFS_SUPER_MAGIC {
		return "", nil
	}
	upper, err := upperDir(s.dir.Path())
	if err != nil || upper == "" {
		return "", err
	}
	if kind, err = fileSystem(upper); err != nil {
		return "", nil //nolint:nilerr // It is a path of another mount namespace.
	}
	if name := inMemory(kind); name != "" {
		return fmt.Sprintf("the store %q is on an overlay that writes to a %s, which a reboot empties: put it on a disk", s.dir.Path(), name), nil
	}
	return "", nil
}

// fileSystem is the kind of file system at a path, by its magic number.
func fileSystem(path string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return 0, fmt.Errorf("ask for the kind of the store's file system: %w", err)
	}
	return int64(stat.Type), nil
}

// inMemory is the name of a file system that is in memory alone, empty for others.
func inMemory(kind int64) string {
	switch kind {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	}
	return ""
}

// upperDir is where the overlay writes to that the path is on; empty where it only reads.
func upperDir(path string) (string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(path))
	if err != nil {
		return "", fmt.Errorf("read the mount table: %w", err)
	}
	var on *mountinfo.Info
	for _, mount := range mounts {
		// Of two on one directory the later is seen.
		if on == nil || len(mount.Mountpoint) >= len(on.Mountpoint) {
			on = mount
		}
	}
	if on == nil {
		return "", nil
	}
	for option := range strings.SplitSeq(on.VFSOptions, ",") {
		if dir, is := strings.CutPrefix(option, "upperdir="); is {
			return unescape(dir), nil
		}
	}
	return "", nil
}

// unescape reads a mount option as the kernel shows it: white space, commas and
// backslashes as \ and three octal digits.
func unescape(text string) string {
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				plain.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		plain.WriteByte(text[i])
	}
	return plain.String()
}
