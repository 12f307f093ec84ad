package gate

import "golang.org/x/sys/unix"

// ofPlatform are the calls that have another name here.
func ofPlatform() map[uint32]signature {
	return map[uint32]signature{
		unix.SYS_FSTATAT: {"newfstatat", Looks, at(0)},
	}
}
