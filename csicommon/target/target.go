// Package target is the paths at which the kubelet wants volumes to be shown: which of
// them there can be, whether one is free, and a directory's way onto it and off again.
//
// It must never touch a path that is neither one of the kubelet's, nor one that its caller
// knows to be its own, nor a mount of something in the store; never mount where something
// is mounted; and never delete anything through a target (rmdir of an empty one is all).
package target

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/mount"
)

// mode is the kubelet's own for the directories around a target. Once something is
// mounted, the mode of that is what a pod sees.
const mode = 0o750

var (
	// ErrTarget is wrapped when a path cannot be a target.
	ErrTarget = errors.New("not a target path")
	// ErrOccupied is wrapped when the target is a mount of something else: another
	// volume's, or what is left of a file system that died.
	ErrOccupied = errors.New("something else is mounted")
)

// Mounts is what targets need of the node's mounts; *mount.System is it.
type Mounts interface {
	Bind(source *os.File, target string, options mount.Options) error
	Unbind(target string) error
	At(point string) (m mount.Mount, mounted bool, err error)
	Locate(dir *os.File) (mount.Location, error)
	RequireShared(dir string) error
}

// Step names one change that is about to be made.
type Step string

// The steps.
const (
	StepMake   Step = "make target"
	StepBind   Step = "bind"
	StepUnbind Step = "unbind"
)

// Config is what Targets need. BeforeStep alone may be nil.
type Config struct {
	// KubeletDir is the kubelet's root directory, canonical.
	KubeletDir string
	// StoreDir is the driver's directory, in which no target can be, and Shown an open
	// directory below which all is that the driver shows.
	StoreDir string
	Shown    *os.File
	Mounts   Mounts
	Log      *slog.Logger
	// BeforeStep is called before each Step, so that a test can end the process there.
	BeforeStep func(Step)
}

// Targets are those of one driver on one node. They hold no locks: no two calls for one
// target may run together.
type Targets struct{ config Config }

// New knows nothing of any target yet.
func New(config Config) *Targets { return &Targets{config: config} }

func (t *Targets) step(s Step) {
	if t.config.BeforeStep != nil {
		t.config.BeforeStep(s)
	}
}

// Canonical is the one spelling of a target under which it is locked, recorded and
// compared with the mount table. The error wraps ErrTarget or mount.ErrPath when the path
// can be none, and LeadsNowhere when there is no such place.
func Canonical(path string) (string, error) {
	switch {
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("%q is not absolute: %w", path, ErrTarget)
	case len(path) >= unix.PathMax:
		return "", fmt.Errorf("it has %d bytes, the kernel takes less than %d: %w", len(path), unix.PathMax, ErrTarget)
	}
	return mount.Canonical(path)
}

// LeadsNowhere is true for the error of a path that nothing can be mounted at, because
// what leads to it is gone or no directory.
func LeadsNowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENAMETOOLONG)
}

// Former is the canonical path of a target that a volume is taken off. One that leads nowhere
// is as it is spelled, without what a path can do without, and nothing can be mounted there.
func Former(at string) (path string, isNowhere bool, err error) {
	path, err = Canonical(at)
	if LeadsNowhere(err) {
		return filepath.Clean(at), true, nil
	}
	return path, false, err
}

// IsBelow tells whether path is dir or below it, both canonical.
func IsBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// VolumeName reads the name out of the kubelet's target of a volume,
// <...>/kubernetes.io~csi/<name>/mount: the PersistentVolume's, or that of an inline
// volume in its pod. It is empty for any other path.
func VolumeName(path string) string {
	dir := filepath.Dir(filepath.Clean(path))
	name := filepath.Base(dir)
	// Both names have the rules of a handle; no other can be asked for.
	if filepath.Base(filepath.Dir(dir)) != "kubernetes.io~csi" || handle.Check(name) != nil {
		return ""
	}
	return name
}
