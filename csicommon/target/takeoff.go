package target

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"liken.sh/csicommon/mount"
)

// TakeOff unmounts what is at the canonical target and removes it; isKnown tells that the
// caller has put it there. A target that is not the driver's to touch is left alone, and
// taken is false.
func (t *Targets) TakeOff(path string, isKnown bool) (taken bool, err error) {
	ours, err := t.isOurs(path, isKnown)
	if err != nil || !ours {
		return false, err
	}
	t.step(StepUnbind)
	if err := t.config.Mounts.Unbind(path); err != nil {
		return false, err
	}
	return true, nil
}

// isOurs is true for a target that the kubelet hands out, one that is known, and one that
// shows something of the store. Only such a target is unmounted or removed, whatever a
// request says.
func (t *Targets) isOurs(path string, isKnown bool) (bool, error) {
	if isKnown || t.isKubelets(path) {
		return true, nil
	}
	return t.ShowsStore(path)
}

// ShowsStore tells whether what is mounted at the canonical target is something of the
// store; false also when nothing is mounted there.
func (t *Targets) ShowsStore(path string) (bool, error) {
	m, mounted, err := t.config.Mounts.At(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !mounted {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the target: %w", err)
	}
	return t.isOfStore(m)
}

func (t *Targets) isOfStore(m mount.Mount) (bool, error) {
	shown, err := t.config.Mounts.Locate(t.config.Shown)
	if err != nil {
		return false, fmt.Errorf("locate the store: %w", err)
	}
	return m.Major == shown.Major && m.Minor == shown.Minor && IsBelow(m.Path, shown.Path), nil
}

// isKubelets is true for the paths the kubelet hands out:
// <kubelet-dir>/pods/<uid>/volumes/kubernetes.io~csi/<name>/mount. The path is canonical,
// so a pods directory that is a link (a disk of its own) is resolved.
func (t *Targets) isKubelets(path string) bool {
	pods := filepath.Join(t.config.KubeletDir, "pods")
	if matchesBelow(path, pods) {
		return true
	}
	resolved, err := filepath.EvalSymlinks(pods)
	return err == nil && matchesBelow(path, resolved)
}

func matchesBelow(path, pods string) bool {
	below, err := filepath.Rel(pods, path)
	if err != nil {
		return false
	}
	ok, err := filepath.Match("*/volumes/kubernetes.io~csi/*/mount", below)
	return err == nil && ok
}
