package descent

import (
	"time"

	"golang.org/x/sys/unix"
)

// Stat is what a visitor may want to know of an entry.
type Stat struct {
	Directory bool
	Mount     bool // The name is the place of a mount; the rest is the mount's.
	// Fixed is what nobody can rename or remove, root neither, as it is immutable or can
	// only be added to; of a directory, what is in it too.
	Fixed    bool
	Device   uint64
	Inode    uint64
	Links    uint32
	Mode     uint32 // With the type of file, as stat(2) gives it.
	Owner    uint32
	Group    uint32
	Bytes    int64     // Allocated, not the length.
	Size     int64     // The length.
	Modified int64     // When the content changed, by anyone's word: nanoseconds since 1970.
	Changed  int64     // When content or inode changed, by the kernel's word: nanoseconds since 1970.
	Made     time.Time // When the inode was made, or last changed where that is not recorded.
}

// Stat looks at name, one that Next gave, without following it. Unlike all else of a
// Directory, it may be called by several goroutines at once.
func (d *Directory) Stat(name string) (Stat, error) {
	var stx unix.Statx_t
	if err := statx(d.fd, name, &stx); err != nil {
		return Stat{}, err
	}
	return d.stat(&stx), nil
}

// Self looks at the directory itself.
func (d *Directory) Self() (Stat, error) {
	return d.Look(d.fd)
}

// Look looks at what the handle fd is open at, which lies in the directory.
func (d *Directory) Look(fd int) (Stat, error) {
	var stx unix.Statx_t
	if err := statx(fd, "", &stx); err != nil {
		return Stat{}, err
	}
	return d.stat(&stx), nil
}

func (d *Directory) stat(stx *unix.Statx_t) Stat {
	made := stx.Mtime
	if stx.Mask&unix.STATX_BTIME != 0 {
		made = stx.Btime
	}
	return Stat{
		Directory: stx.Mode&unix.S_IFMT == unix.S_IFDIR,
		Mount:     d.isMount(stx),
		Fixed:     stx.Attributes&(unix.STATX_ATTR_IMMUTABLE|unix.STATX_ATTR_APPEND) != 0,
		Device:    device(stx),
		Inode:     stx.Ino,
		Links:     stx.Nlink,
		Mode:      uint32(stx.Mode),
		Owner:     stx.Uid,
		Group:     stx.Gid,
		Bytes:     int64(stx.Blocks) * 512,
		Size:      int64(stx.Size),
		Modified:  nanoseconds(stx.Mtime),
		Changed:   nanoseconds(stx.Ctime),
		Made:      time.Unix(made.Sec, int64(made.Nsec)),
	}
}

// nanoseconds wraps around for times before 1678 and after 2262, which anyone can
// set: two of them may be compared for equality alone.
func nanoseconds(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// isMount reports whether stx, of an entry of d, is that of a mount's top.
// Before Linux 5.8 only the device tells: a bind mount of the same file system
// is then found by openat2 alone, and a btrfs subvolume is taken for a mount.
func (d *Directory) isMount(stx *unix.Statx_t) bool {
	if stx.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return stx.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	return device(stx) != d.tree.device
}

func identify(stx *unix.Statx_t) identity {
	return identity{device: device(stx), inode: stx.Ino, mount: stx.Mnt_id}
}

func device(stx *unix.Statx_t) uint64 { return unix.Mkdev(stx.Dev_major, stx.Dev_minor) }

// statx asks for name in dir, or for dir itself when name is empty. It never
// starts an automount and, where a mount hides name, never waits for that
// mount's server.
func statx(dir int, name string, stx *unix.Statx_t) error {
	const (
		flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC | unix.AT_EMPTY_PATH
		mask  = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID
	)
	_, err := restarted(func() (int, error) { return 0, unix.Statx(dir, name, flags, mask, stx) })
	return err
}
