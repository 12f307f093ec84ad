package copies

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Hold says which pod has a volume's copy, and where. It names the holder to
// people; whether a copy is held at all is what the mount table says.
type Hold struct {
	PodUID       string `json:"podUID"`
	PodNamespace string `json:"podNamespace"`
	PodName      string `json:"podName"`
	Target       string `json:"target"` // canonical
	ReadOnly     bool   `json:"readOnly"`
	PV           string `json:"persistentVolume"`
}

// Pod names the holder as people do, empty when the hold does not tell.
func (h Hold) Pod() string {
	if h.PodName == "" {
		return ""
	}
	return h.PodNamespace + "/" + h.PodName
}

// writeHold puts the hold in place by rename, so that a reader finds the old or
// the new one whole. It is not synced: after a power cut no mount is left that
// it could name.
func (s *Store) writeHold(volume string, hold Hold) error {
	data, err := json.Marshal(hold)
	if err != nil {
		return fmt.Errorf("encode the hold of volume %q: %w", volume, err)
	}
	name := unfinished + rand.Text()
	s.step("write hold")
	if err := s.holds.WriteFile(name, data, 0o600); err != nil {
		return errors.Join(fmt.Errorf("write the hold of volume %q: %w", volume, withoutPath(err)), s.removeHoldFile(name))
	}
	s.step("name hold")
	if err := s.holds.Rename(name, volume); err != nil {
		return errors.Join(fmt.Errorf("write the hold of volume %q: %w", volume, withoutPath(err)), s.removeHoldFile(name))
	}
	return nil
}

// readHold returns the hold, false when it is missing or cannot be read.
func (s *Store) readHold(volume string) (Hold, bool) {
	data, err := s.holds.ReadFile(volume)
	if errors.Is(err, fs.ErrNotExist) {
		return Hold{}, false
	}
	var hold Hold
	if err == nil {
		err = json.Unmarshal(data, &hold)
	}
	if err != nil {
		// Not a warning: whoever looks at the copies each half minute comes by here.
		s.config.Log.Debug("a hold cannot be read, the mount table decides", "volume", volume, "error", err)
		return Hold{}, false
	}
	return hold, true
}

func (s *Store) hasHold(volume string) bool {
	_, err := s.holds.Lstat(volume)
	return err == nil
}

// dropHold removes the hold of a copy that is no longer mounted.
func (s *Store) dropHold(volume string) error {
	s.step("drop hold")
	if err := s.removeHoldFile(volume); err != nil {
		return fmt.Errorf("drop the hold of volume %q: %w", volume, withoutPath(err))
	}
	return nil
}

func (s *Store) removeHoldFile(name string) error {
	if err := s.holds.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// cleanHolds removes unfinished holds, and those whose target is no mount any
// more: a reboot leaves all of them so.
func (s *Store) cleanHolds() error {
	entries, err := os.ReadDir(filepath.Join(s.config.Dir, holdsDir))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), unfinished) {
			if err := s.removeHoldFile(entry.Name()); err != nil {
				return fmt.Errorf("remove unfinished %q: %w", entry.Name(), err)
			}
			continue
		}
		if hold, readable := s.readHold(entry.Name()); readable && s.isGone(hold.Target) {
			s.config.Log.Info("dropping the hold of a target that is gone", "volume", entry.Name(), "target", hold.Target, "pod", hold.Pod())
			if err := s.removeHoldFile(entry.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// isGone is true only if the kernel says that nothing is mounted at target.
func (s *Store) isGone(target string) bool {
	mounted, err := s.config.Mounts.IsMount(target)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !mounted
}
