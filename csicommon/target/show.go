package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/mount"
)

// Check refuses a canonical target where a mount would hide something, or would not reach
// the kubelet. The error wraps ErrTarget, ErrOccupied or mount.ErrNotShared.
func (t *Targets) Check(path string) error {
	if IsBelow(path, t.config.StoreDir) {
		return fmt.Errorf("%q is inside the store: %w", path, ErrTarget)
	}
	for _, dir := range []string{t.config.StoreDir, t.config.KubeletDir} {
		if IsBelow(dir, path) {
			return fmt.Errorf("a mount at %q would hide %q: %w", path, dir, ErrTarget)
		}
	}
	m, mounted, err := t.config.Mounts.At(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the target: %w", err)
	}
	if mounted {
		return Occupied(path, m)
	}
	return t.requireShared(path)
}

// Occupied is the error for a target at which m is mounted.
func Occupied(path string, m mount.Mount) error {
	return fmt.Errorf("%w at %q (%q of device %d:%d), unmount it first", ErrOccupied, path, m.Path, m.Major, m.Minor)
}

// requireShared judges the mount that the target lies on, and advises on the kubelet
// directory, since that is the one to be mounted otherwise.
func (t *Targets) requireShared(path string) error {
	err := t.config.Mounts.RequireShared(filepath.Dir(path))
	if err == nil || !IsBelow(path, t.config.KubeletDir) {
		return err
	}
	if advice := t.config.Mounts.RequireShared(t.config.KubeletDir); advice != nil {
		return advice
	}
	return err
}

// Show makes the target and mounts the directory there. After an error nothing is mounted,
// and a directory that was made for it is gone.
func (t *Targets) Show(source *os.File, path string, options mount.Options) error {
	t.step(StepMake)
	made := true
	if err := os.Mkdir(path, mode); errors.Is(err, fs.ErrExist) {
		made = false
	} else if err != nil {
		return fmt.Errorf("make the target: %w", err)
	}
	t.step(StepBind)
	err := t.config.Mounts.Bind(source, path, options)
	if err != nil && made {
		if rmErr := unix.Rmdir(path); rmErr != nil {
			t.config.Log.Warn("the target of a failed bind stays", "target", path, "error", rmErr)
		}
	}
	return err
}
