//go:build soak

package soak

import (
	"bufio"
	"os"
	"path"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// shownAt is a mount that shows a copy.
type shownAt struct {
	id       int
	point    string
	readOnly bool
	isGone   bool // The copy was removed under it.
}

// shown are the mounts below the kubelet's directory that show copies, by handle.
func (s *soak) shown() map[string][]shownAt {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		panic(err)
	}
	defer table.Close()
	all, err := mountinfo.GetMountsFromReader(bufio.NewReaderSize(table, 1<<20), func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, s.KubeletDir+"/pods/"), false
	})
	if err != nil {
		panic(err)
	}
	found := make(map[string][]shownAt)
	for _, m := range all {
		root, isGone := strings.CutSuffix(m.Root, "//deleted")
		handle := path.Base(root)
		found[handle] = append(found[handle], shownAt{
			id: m.ID, point: m.Mountpoint, readOnly: strings.HasPrefix(m.Options, "ro"), isGone: isGone || path.Dir(root) != "/store/copies",
		})
	}
	return found
}

// watchForTwo looks all the time whether two pods have one copy. The table is no picture of
// one moment, so two of them have to be there twice.
func (s *soak) watchForTwo(over <-chan struct{}) {
	last := make(map[[2]int]bool)
	for {
		select {
		case <-over:
			return
		case <-time.After(10 * time.Millisecond):
		}
		now := make(map[[2]int]bool)
		for handle, mounts := range s.shown() {
			if len(mounts) < 2 {
				continue
			}
			pair := [2]int{mounts[0].id, mounts[1].id}
			if now[pair] = true; last[pair] {
				s.T.Errorf("%s is shown twice at one time: %+v", handle, mounts)
				return
			}
		}
		last = now
	}
}

// loseMount unmounts the target under the pod, as somebody does who tidies up.
func (v *volume) loseMount() {
	if v.holder == nobody {
		return
	}
	before, target := v.now(), v.target(v.holder)
	v.note("somebody unmounts %s", target)
	if err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW); err != nil {
		v.wrong("unmount the target of pod %d: %v", v.holder, err)
	}
	v.stale = true
	v.find(before)
}

// reboot takes all mounts away, while no plugin runs.
func (s *soak) reboot() {
	s.note("all mounts are gone, as after a reboot")
	for handle, mounts := range s.shown() {
		for _, m := range mounts {
			if err := unix.Unmount(m.point, unix.UMOUNT_NOFOLLOW); err != nil {
				s.T.Errorf("unmount %s of %s: %v", m.point, handle, err)
			}
		}
	}
	for _, v := range s.volumes {
		v.holder, v.readOnly = nobody, false
	}
}
