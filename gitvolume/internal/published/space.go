package published

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/target"
	"liken.sh/csicommon/usage"
	"liken.sh/gitvolume/internal/report"
)

// Space is what a volume's tree uses, and what the file system that it is on has. Trees that
// volumes share count in full for each.
type Space struct {
	Used usage.Usage
	usage.Space
}

// Space is that of the volume at a path where it is published; else the error wraps
// ErrNotPublished. It waits for nothing but the disk and the first measurement, and no
// longer than ctx.
func (v *Volumes) Space(ctx context.Context, handle, at string) (Space, error) {
	dir, err := v.dirAt(handle, at)
	if err != nil {
		return Space{}, err
	}
	space, err := v.questions.Space(ctx, handle, func() (usage.Space, error) { return spaceIn(dir) })
	if err != nil {
		return Space{}, err
	}
	used, err := v.meter.Usage(ctx, dir)
	if err != nil {
		return Space{}, fmt.Errorf("measure volume %q: %w", handle, err)
	}
	return Space{Used: used, Space: space}, nil
}

func spaceIn(dir string) (usage.Space, error) {
	tree, err := openTree(dir)
	if err != nil {
		return usage.Space{}, err
	}
	defer tree.Close()
	return usage.SpaceOf(tree)
}

func (v *Volumes) dirAt(handle, at string) (string, error) {
	path, err := target.Canonical(at)
	// A path that can be no target is one more where the volume is not.
	if err != nil && !target.LeadsNowhere(err) && !errors.Is(err, target.ErrTarget) && !errors.Is(err, mount.ErrPath) {
		return "", err
	}
	if vol := v.known(handle); vol != nil {
		vol.mu.Lock()
		defer vol.mu.Unlock()
		if p := vol.at(path); p != nil && vol.attachment != nil {
			return vol.attachment.Dir(), nil
		}
	}
	return "", fmt.Errorf("volume %q at %q: %w", handle, at, ErrNotPublished)
}

// openMeasured opens a tree for who goes through it.
func openMeasured(dir string) (*os.File, error) { return openDir(dir, unix.O_RDONLY) }

// Abnormal is all that is wrong with a volume, from memory; nil for one that is not here.
func (v *Volumes) Abnormal(handle string) []report.Reason {
	if vol := v.known(handle); vol != nil {
		return vol.report.Abnormal()
	}
	return nil
}
