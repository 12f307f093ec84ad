package copies

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/errortext"
	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
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

// check refuses what no publish has written: a person has, or another release, which may
// say elsewhere who has the copy.
func (h Hold) check() error {
	if !filepath.IsAbs(h.Target) || filepath.Clean(h.Target) != h.Target {
		return fmt.Errorf("it names no target, but %.40q", h.Target)
	}
	if h.PV == "" {
		return nil
	}
	return handle.Check(h.PV)
}

// stamp tells one hold file from another without reading it.
type stamp struct {
	inode  uint64
	change unix.Timespec
}

// Hold returns what is written about the volume's latest holder, false when that
// is missing or cannot be read.
func (s *Store) Hold(volume string) (Hold, bool) {
	data, err := storedir.ReadFile(s.holds, volume, longestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Hold{}, false
	}
	var hold Hold
	if err == nil {
		err = json.Unmarshal(data, &hold)
	}
	if err == nil {
		err = hold.check()
	}
	if err != nil {
		// Not a warning: whoever looks at the copies each half minute comes by here.
		s.config.Log.Debug("a hold cannot be read, the mount table decides", "volume", volume, "error", err)
		return Hold{}, false
	}
	return hold, true
}

// writeHold puts the hold in place. It is not synced: after a power cut no mount
// is left that it could name. Where it cannot be written (a full disk, a broken
// holds directory) only the holder's name is lost, and a pod that comes back to
// make room must be let in: that the copy is held shows in the mount table.
func (s *Store) writeHold(volume string, hold Hold) {
	s.step("write hold")
	data, err := json.Marshal(hold)
	if err == nil {
		err = replaceFile(s.holds, volume, data, func(*os.File) error { s.step("name hold"); return nil })
	}
	if err != nil {
		s.config.Log.Warn("a hold cannot be written, only the mount shows who has the copy",
			"volume", volume, "pod", hold.Pod(), "error", errortext.WithoutPath(err))
		s.doubt(volume)
		return
	}
	s.remember(volume)
}

// keepHold sees to it that the hold tells what hold does, at the price of one
// look while nobody touched it.
func (s *Store) keepHold(volume string, hold Hold) {
	now, there := s.stampOf(volume)
	s.mu.Lock()
	known := there && s.stamps[volume] == now
	s.mu.Unlock()
	if known {
		return
	}
	if written, readable := s.Hold(volume); readable && written.Target == hold.Target {
		s.remember(volume)
		return
	}
	s.writeHold(volume, hold)
}

// remember takes the hold that is there for right.
func (s *Store) remember(volume string) {
	if now, there := s.stampOf(volume); there {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stamps[volume] = now
	}
}

// doubt has the hold read before it is believed again.
func (s *Store) doubt(volume string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stamps, volume)
}

func (s *Store) stampOf(volume string) (stamp, bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(s.holds.Fd()), volume, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stamp{}, false
	}
	return stamp{inode: st.Ino, change: st.Ctim}, true
}

func (s *Store) hasHold(volume string) bool {
	_, there := s.stampOf(volume)
	return there
}

// dropHold removes the hold of a copy that is no longer mounted. One that stays
// (a disk that went read-only) is taken over by the next pod, so no pod has to
// stay for it.
func (s *Store) dropHold(volume string) {
	s.step("drop hold")
	if err := removeFile(s.holds, volume); err != nil {
		s.config.Log.Warn("a hold cannot be removed, the next pod takes it over", "volume", volume, "error", err)
	}
	s.doubt(volume)
}

// Holds returns the handles that a hold is written for. After a start, only that
// tells of a copy that was moved away while a pod has it.
func (s *Store) Holds() ([]string, error) {
	names, err := storedir.Names(s.holds)
	if err != nil {
		return nil, fmt.Errorf("list the holds: %w", err)
	}
	// What an interrupted write left is no hold.
	return slices.DeleteFunc(names, func(name string) bool { return handle.Check(name) != nil }), nil
}

// cleanHolds removes the holds whose target is no mount any more: a reboot leaves
// all of them so.
func (s *Store) cleanHolds() error {
	names, err := storedir.Names(s.holds)
	if err != nil {
		return fmt.Errorf("read its holds: %w", err)
	}
	for _, volume := range names {
		if hold, readable := s.Hold(volume); readable && s.isGone(hold.Target) {
			s.config.Log.Info("dropping the hold of a target that is gone", "volume", volume, "target", hold.Target, "pod", hold.Pod())
			s.dropHold(volume)
		}
	}
	return nil
}

// isGone is true only if the kernel says that nothing is mounted at target.
func (s *Store) isGone(target string) bool {
	mounted, err := s.config.Mounts.IsMount(target)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !mounted
}
