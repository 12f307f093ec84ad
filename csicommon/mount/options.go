package mount

import (
	"fmt"
)

// Options are the flags of one bind. nosuid and nodev are always on: a volume is
// data, and what a pod puts into it must not gain privileges through the node.
type Options struct {
	ReadOnly bool
	NoExec   bool
	NoAtime  bool
}

// acceptedOptions is how an error lists them, in the order of the documentation.
const acceptedOptions = "ro, noexec, nosuid, nodev, noatime"

// ParseOptions reads the mount options of a PersistentVolume
// (VolumeCapability.mount.mount_flags). The error wraps ErrOption and names the
// option that is not accepted; ignoring one would be a promise not kept.
func ParseOptions(flags []string) (Options, error) {
	var o Options
	for _, flag := range flags {
		switch flag {
		case "ro":
			o.ReadOnly = true
		case "noexec":
			o.NoExec = true
		case "noatime":
			o.NoAtime = true
		case "nosuid", "nodev":
		default:
			return Options{}, fmt.Errorf("mount option %q: %w (accepted: %s)", flag, ErrOption, acceptedOptions)
		}
	}
	return o, nil
}
