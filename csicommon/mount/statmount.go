package mount

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's interface, from include/uapi/linux/mount.h: golang.org/x/sys has the
// numbers of the two calls and nothing else of them.
const (
	listmountRoot = ^uint64(0) // LSMT_ROOT: below the root of this process

	statmountSuperblock  = 0x1  // STATMOUNT_SB_BASIC
	statmountBasic       = 0x2  // STATMOUNT_MNT_BASIC
	statmountRoot        = 0x8  // STATMOUNT_MNT_ROOT
	statmountPoint       = 0x10 // STATMOUNT_MNT_POINT
	statmountNeeded      = statmountSuperblock | statmountBasic
	statmountWanted      = statmountNeeded | statmountRoot | statmountPoint
	statmountBufferSmall = 1 << 10
	// statmountBufferMax holds two paths of PATH_MAX with room to spare.
	statmountBufferMax = 1 << 16

	// Offsets within struct statmount, in bytes.
	offsetMask        = 8
	offsetMajor       = 16
	offsetMinor       = 20
	offsetID          = 40
	offsetAttributes  = 64
	offsetPropagation = 72
	offsetRoot        = 104
	offsetPoint       = 108
	offsetStrings     = 512
)

// mountRequest is struct mnt_id_req in its first version (MNT_ID_REQ_SIZE_VER0),
// which every kernel with the calls takes.
type mountRequest struct {
	size  uint32
	spare uint32
	id    uint64
	param uint64
}

func newRequest(id, param uint64) mountRequest {
	return mountRequest{size: uint32(unsafe.Sizeof(mountRequest{})), id: id, param: param}
}

// listmount fills ids with the unique ids of mounts greater than after, smallest
// first, and returns how many there were.
func listmount(after uint64, ids []uint64) (int, error) {
	request := newRequest(listmountRoot, after)
	n, _, errno := unix.Syscall6(unix.SYS_LISTMOUNT, uintptr(unsafe.Pointer(&request)),
		uintptr(unsafe.Pointer(unsafe.SliceData(ids))), uintptr(len(ids)), 0, 0, 0)
	if errno != 0 {
		return 0, fmt.Errorf("list the mounts: %w", errno)
	}
	return int(n), nil
}

// statmount describes the mount with a unique id; found is false when it is gone.
//
// Nothing bounds a path but the names on it: whoever may rename what a mount shows (a pod,
// of a subPath of its own) can move it to any depth, and one such mount must not keep every
// other one from being known. A path that is too long to be given is empty, and so is the
// point of a mount that no path leads to.
func statmount(id uint64) (m Mount, found bool, err error) {
	for _, wanted := range []uint64{statmountWanted, statmountWanted &^ statmountRoot, statmountNeeded} {
		m, found, err = statmountOf(id, wanted)
		if !errors.Is(err, unix.EOVERFLOW) {
			break
		}
	}
	return m, found, err
}

func statmountOf(id, wanted uint64) (m Mount, found bool, err error) {
	for size := statmountBufferSmall; size <= statmountBufferMax; size *= 4 {
		buffer := make([]byte, size)
		err = statmountInto(id, wanted, buffer)
		if errors.Is(err, unix.EOVERFLOW) {
			continue
		}
		if errors.Is(err, unix.ENOENT) {
			return Mount{}, false, nil
		}
		if err != nil {
			break
		}
		m, err = decodeStatmount(buffer, wanted)
		return m, err == nil, err
	}
	return Mount{}, false, fmt.Errorf("describe a mount: %w", err)
}

func statmountInto(id, wanted uint64, buffer []byte) error {
	request := newRequest(id, wanted)
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&request)),
			uintptr(unsafe.Pointer(unsafe.SliceData(buffer))), uintptr(len(buffer)), 0, 0, 0)
		switch errno {
		case 0:
			return nil
		case unix.EINTR, unix.EAGAIN:
			continue
		}
		return errno
	}
}

func decodeStatmount(b []byte, wanted uint64) (Mount, error) {
	word, long := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	given := long(b[offsetMask:])
	if required := wanted &^ statmountPoint; given&required != required {
		return Mount{}, errors.New("describe a mount: the kernel left out what was asked")
	}
	root, err := stringAt(b, word(b[offsetRoot:]), given&wanted&statmountRoot != 0)
	if err != nil {
		return Mount{}, err
	}
	point, err := stringAt(b, word(b[offsetPoint:]), given&wanted&statmountPoint != 0)
	if err != nil {
		return Mount{}, err
	}
	root, deleted := strings.CutSuffix(root, deletedSuffix)
	return Mount{
		ID:       long(b[offsetID:]),
		Location: Location{Major: word(b[offsetMajor:]), Minor: word(b[offsetMinor:]), Path: root},
		Deleted:  deleted,
		Point:    point,
		ReadOnly: long(b[offsetAttributes:])&unix.MOUNT_ATTR_RDONLY != 0,
		Shared:   long(b[offsetPropagation:])&unix.MS_SHARED != 0,
	}, nil
}

// stringAt returns the string that starts offset bytes into the string part, if it is given.
func stringAt(b []byte, offset uint32, isGiven bool) (string, error) {
	if !isGiven {
		return "", nil
	}
	start := offsetStrings + uint64(offset)
	if start >= uint64(len(b)) {
		return "", errors.New("describe a mount: a string lies outside of the answer")
	}
	text, _, terminated := bytes.Cut(b[start:], []byte{0})
	if !terminated {
		return "", errors.New("describe a mount: a string does not end")
	}
	return string(text), nil
}
