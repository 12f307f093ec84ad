package copies

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/mount"
)

func (f *fixture) holdPath(volume string) string { return filepath.Join(f.dir, holdsDir, volume) }

// A hold that is gone, broken or wrong changes only how the holder is named: the
// mount table says whether there is one.
func TestTheMountTableDecides(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(f *fixture)
	}{
		{"missing", func(f *fixture) { f.must(os.Remove(f.holdPath("h1"))) }},
		{"empty", func(f *fixture) { f.must(os.WriteFile(f.holdPath("h1"), nil, 0o600)) }},
		{"not JSON", func(f *fixture) { f.must(os.WriteFile(f.holdPath("h1"), []byte("\x00{"), 0o600)) }},
		{"of another release", func(f *fixture) {
			f.must(os.WriteFile(f.holdPath("h1"), []byte(`{"holders":[{"podName":"liar"}]}`), 0o600))
		}},
		{"a directory", func(f *fixture) {
			f.must(os.Remove(f.holdPath("h1")))
			f.must(os.Mkdir(f.holdPath("h1"), 0o700))
		}},
		{"lies about the target", func(f *fixture) {
			data, err := json.Marshal(Hold{PodName: "liar", PodNamespace: "ns", Target: "/elsewhere"})
			f.must(err)
			f.must(os.WriteFile(f.holdPath("h1"), data, 0o600))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, restarted := range []bool{false, true} {
				f := newFixture(t)
				f.must(f.publish("h1", "1"))
				row.spoil(f)
				if restarted {
					f.restart()
				}
				err := f.publish("h1", "2")
				if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), f.target("1")) || strings.Contains(err.Error(), "liar") {
					t.Errorf("restarted=%t: %v, want ErrHeld naming the mount", restarted, err)
				}
				f.must(f.publish("h1", "1")) // the holder itself stays welcome
				f.must(f.unpublish("h1", "1"))
				if row.name == "a directory" {
					continue // an administrator's puzzle, and no reason to lose a copy
				}
				f.must(f.publish("h1", "2"))
			}
		})
	}
}

func TestAHoldWithoutItsMountIsTakenOver(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.command("umount", f.target("1")) // a reboot, or a person
	f.must(f.publish("h1", "2"))
	hold, held, err := f.store.Holder("h1")
	if err != nil || !held || hold.Pod() != "ns/pod-2" {
		t.Errorf("Holder = %+v, %t, %v", hold, held, err)
	}
}

// What no publish has written says nothing: not that somebody moved the copy away, nor by
// which PersistentVolume it is known.
func TestAHoldThatSaysNothing(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
	for _, text := range []string{
		"null", "{}", `{"version":2,"targets":["/a"]}`, `{"target":"mount"}`, `{"target":"/a/../b"}`,
		`{"target":"/a","persistentVolume":"a/b"}`,
	} {
		f.must(os.WriteFile(f.holdPath("h1"), []byte(text), 0o600))
		if hold, readable := f.store.Hold("h1"); readable {
			t.Errorf("%s is read as %+v", text, hold)
		}
		state, err := f.store.State("h1")
		if err != nil || state.Deleted || state.Unmounted || state.Held {
			t.Errorf("%s: State = %+v, %v", text, state, err)
		}
	}
	f.must(f.publish("h1", "2"))
	if hold, readable := f.store.Hold("h1"); !readable || hold.Pod() != "ns/pod-2" {
		t.Errorf("the hold was not replaced: %+v, %t", hold, readable)
	}
}

func TestStaleHoldsGoAtTheStart(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(f.publish("h2", "2"))
	f.command("umount", f.target("1"))
	f.restart()
	if f.store.hasHold("h1") || !f.store.hasHold("h2") {
		t.Errorf("holds: h1 %t, h2 %t; want only h2's", f.store.hasHold("h1"), f.store.hasHold("h2"))
	}
}

// blindMounts is a mount table that cannot be read.
type blindMounts struct{ Mounts }

var errBlind = errors.New("no /proc here")

func (blindMounts) Showing(mount.Location) ([]mount.Mount, error) { return nil, errBlind }

func TestAnUnreadableMountTableRefuses(t *testing.T) {
	f := newFixture(t)
	f.store.config.Mounts = blindMounts{f.mounts}
	if err := f.publish("h1", "1"); !errors.Is(err, ErrUndecided) || !errors.Is(err, errBlind) {
		t.Errorf("publish: %v, want ErrUndecided", err)
	}
	if err := f.store.Remove(t.Context(), "h1", allow); !errors.Is(err, ErrUndecided) {
		t.Errorf("remove: %v, want ErrUndecided", err)
	}
}

// The directory behind a mount was removed by somebody else (C04): the pod still
// has the mount, so it still holds the volume.
func TestADeletedCopyIsStillHeld(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(os.RemoveAll(f.copyPath("h1")))
	if err := f.publish("h1", "2"); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "ns/pod-1") {
		t.Errorf("%v, want ErrHeld naming ns/pod-1", err)
	}
	state, err := f.store.State("h1")
	if err != nil || !state.Deleted || state.Exists {
		t.Errorf("State = %+v, %v", state, err)
	}
	f.must(f.unpublish("h1", "1"))
	if n := f.mountsAt(f.target("1")); n != 0 {
		t.Errorf("%d mounts left", n)
	}
	f.must(f.publish("h1", "2"))
	info, err := os.Stat(f.copyPath("h1"))
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the new copy: %v, %v", info, err)
	}
}

func TestACopyMovedUnderItsPodShows(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(os.Rename(f.copyPath("h1"), filepath.Join(t.TempDir(), "moved")))
	state, err := f.store.State("h1")
	if err != nil || !state.Deleted || state.Unmounted {
		t.Errorf("State = %+v, %v", state, err)
	}
}

// The plugin is started while the copy is aside, so it first sees the pod's mount
// under another path.
func TestACopyThatWasPutBackIsHeld(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	aside := filepath.Join(t.TempDir(), "aside")
	f.must(os.Rename(f.copyPath("h1"), aside))
	f.restart()
	if state, err := f.store.State("h1"); err != nil || !state.Deleted {
		t.Errorf("aside: State = %+v, %v", state, err)
	}
	f.must(os.Rename(aside, f.copyPath("h1")))
	if state, err := f.store.State("h1"); err != nil || state.Deleted || !state.Held {
		t.Errorf("back: State = %+v, %v", state, err)
	}
	if _, err := f.store.SpaceAt(t.Context(), "h1", f.target("1")); err != nil {
		t.Errorf("back: its space: %v", err)
	}
	if err := f.publish("h1", "2"); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "ns/pod-1") {
		t.Errorf("%v, want ErrHeld naming ns/pod-1", err)
	}
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "2"))
}

// A disk that is mounted as the copy while a pod has the directory below it (or was before,
// and is seen only by a plugin that is started again): the pod keeps what it has, alone.
func TestADiskMountedOverAHeldCopy(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.command("mount", "-t", "tmpfs", "disk", f.copyPath("h1"))
	t.Cleanup(func() { f.command("umount", f.copyPath("h1")) })
	for _, restarted := range []bool{false, true} {
		if restarted {
			f.restart()
		}
		if err := f.publish("h1", "2"); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "ns/pod-1") {
			t.Errorf("restarted=%t: %v, want ErrHeld naming ns/pod-1", restarted, err)
		}
		f.must(f.publish("h1", "1"))
		if state, err := f.store.State("h1"); err != nil || !state.Held || !state.Deleted {
			t.Errorf("restarted=%t: State = %+v, %v", restarted, state, err)
		}
	}
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "2"))
	if state, err := f.store.State("h1"); err != nil || !state.Held || state.Deleted {
		t.Errorf("with the disk: State = %+v, %v", state, err)
	}
	f.must(f.unpublish("h1", "2"))
}

// An administrator may give one copy a disk of its own; that mount in the store
// holds nothing, and a pod's does.
func TestACopyOnADiskOfItsOwn(t *testing.T) {
	f := newFixture(t)
	f.must(os.Mkdir(f.copyPath("h1"), 0o777))
	f.command("mount", "-t", "tmpfs", "disk", f.copyPath("h1"))
	t.Cleanup(func() { f.command("umount", f.copyPath("h1")) })
	f.must(f.publish("h1", "1"))
	if err := f.publish("h1", "2"); !errors.Is(err, ErrHeld) {
		t.Errorf("%v, want ErrHeld", err)
	}
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "2"))
	f.must(f.unpublish("h1", "2"))
	if err := f.store.Remove(t.Context(), "h1", allow); err == nil || !f.exists(f.copyPath("h1")) {
		t.Errorf("Remove of a mount point = %v", err)
	}
}
