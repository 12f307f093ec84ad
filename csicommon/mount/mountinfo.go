package mount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"
	utilio "k8s.io/utils/io"

	"liken.sh/csicommon/errortext"
)

const (
	mountinfoPath = "/proc/self/mountinfo"
	// mountinfoReads bounds how often the file is read for two equal looks: kernels
	// before 5.8 skip lines when a mount goes away during the read.
	mountinfoReads = 20
	// deletedSuffix is behind the root of a mount whose directory was deleted. The
	// double slash keeps it apart from a directory that is named so.
	deletedSuffix = "//deleted"
)

// mountinfoTable reads /proc/self/mountinfo anew for each question, as any kernel
// lets it. It costs what the whole table costs.
type mountinfoTable struct{}

func (t mountinfoTable) at(point string) (Mount, bool, error) {
	fd, err := openPath(point, unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return Mount{}, false, nil
	}
	if mountutils.IsCorruptedMnt(err) {
		return t.last(point)
	}
	if err != nil {
		return Mount{}, false, fmt.Errorf("open it: %w", err)
	}
	handle := os.NewFile(uintptr(fd), point)
	// The id tells the topmost of several mounts at one point, and those hidden
	// below a later mount from those that are reached.
	id, err := mountID(handle)
	// Closed before the table is read, as an open handle keeps the mount busy.
	_ = handle.Close()
	if err != nil {
		return Mount{}, false, err
	}
	m, found, err := t.byID(id)
	return m, found && m.Point == point, err
}

// last goes by the path alone, for a filesystem too dead to be opened (NFS answers
// ESTALE). A mount on top of another is below it in the table.
func (t mountinfoTable) last(point string) (Mount, bool, error) {
	mounts, err := t.read(func(m Mount) bool { return m.Point == point })
	if err != nil || len(mounts) == 0 {
		return Mount{}, false, err
	}
	return mounts[len(mounts)-1], true, nil
}

func (t mountinfoTable) holding(dir *os.File) (Mount, error) {
	id, err := mountID(dir)
	if err != nil {
		return Mount{}, err
	}
	m, found, err := t.byID(id)
	if err == nil && !found {
		err = errors.New("its mount is not in the mount table")
	}
	return m, err
}

func (t mountinfoTable) byID(id uint64) (Mount, bool, error) {
	mounts, err := t.read(func(m Mount) bool { return m.ID == id })
	if err != nil || len(mounts) == 0 {
		return Mount{}, false, err
	}
	return mounts[0], true, nil
}

func (t mountinfoTable) showing(loc Location) ([]Mount, error) {
	return t.read(func(m Mount) bool { return m.Location == loc })
}

func (mountinfoTable) attaching() func() { return func() {} }

// rescan proves that the table can be read; nothing of it is kept.
func (t mountinfoTable) rescan() error {
	_, err := t.read(func(Mount) bool { return false })
	return err
}

// read returns the mounts that are wanted.
func (mountinfoTable) read(wanted func(Mount) bool) ([]Mount, error) {
	content, err := utilio.ConsistentRead(mountinfoPath, mountinfoReads)
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	infos, err := mountinfo.GetMountsFromReader(bytes.NewReader(withShortPaths(content)), nil)
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	var mounts []Mount
	for _, info := range infos {
		if m := fromInfo(info); wanted(m) {
			mounts = append(mounts, m)
		}
	}
	return mounts, nil
}

// longestPath is how much of a path in the table is read, in bytes: as much as one that can
// be opened has when each of its bytes is written as four.
const longestPath = 4 * unix.PathMax

// withShortPaths cuts the paths in the table that are longer than any that is asked for:
// the parser gives up the whole table at a line that is too long for it. Whoever may rename
// what a mount shows (a pod, of a subPath of its own) makes its root as deep as it likes.
func withShortPaths(table []byte) []byte {
	const root, point, parts = 3, 4, 6
	var short []byte
	for line := range bytes.Lines(table) {
		fields := bytes.SplitN(line, []byte(" "), parts)
		if len(line) > longestPath && len(fields) == parts {
			fields[root], fields[point] = shortened(fields[root]), shortened(fields[point])
			line = bytes.Join(fields, []byte(" "))
		}
		short = append(short, line...)
	}
	return short
}

// shortened cuts a path where a name ends, so that no byte that is written as four is cut.
func shortened(path []byte) []byte {
	if len(path) <= longestPath {
		return path
	}
	return path[:max(0, bytes.LastIndexByte(path[:longestPath], '/'))]
}

func fromInfo(info *mountinfo.Info) Mount {
	root, deleted := strings.CutSuffix(info.Root, deletedSuffix)
	m := Mount{
		ID:       uint64(info.ID),
		Location: Location{Major: uint32(info.Major), Minor: uint32(info.Minor), Path: root},
		Deleted:  deleted,
		Point:    info.Mountpoint,
	}
	for option := range strings.SplitSeq(info.Options, ",") {
		m.ReadOnly = m.ReadOnly || option == "ro"
	}
	for tag := range strings.FieldsSeq(info.Optional) {
		m.Shared = m.Shared || strings.HasPrefix(tag, "shared:")
	}
	return m
}

// mountID returns the id, as in mountinfo, of the mount f was reached through.
func mountID(f *os.File) (uint64, error) {
	content, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return 0, fmt.Errorf("read the id of its mount: %w", errortext.WithoutPath(err))
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, errors.New("read the id of its mount: the kernel does not tell it")
}
