package copies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/mount"
)

// The environment of a child that plays one call and is killed at a step.
const (
	killAtVariable = "PERNODE_TEST_KILL_AT" // number of the step, from 1
	callVariable   = "PERNODE_TEST_CALL"
	dirVariable    = "PERNODE_TEST_STORE"
	rootVariable   = "PERNODE_TEST_KUBELET"
	targetVariable = "PERNODE_TEST_TARGET"
)

// steppingMounts adds the steps within and after a call to the mount table.
type steppingMounts struct {
	*mount.System
	step func(Step)
}

func (m steppingMounts) Bind(source *os.File, target string, options mount.Options) error {
	err := m.System.Bind(source, target, options)
	m.step("bound")
	return err
}

func (m steppingMounts) Unbind(target string) error {
	if err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW); err != nil {
		return err
	}
	m.step("unmounted")
	err := m.System.Unbind(target)
	m.step("target removed")
	return err
}

// runUntilKilled is the child: it makes the call and kills itself with SIGKILL
// right before the step. It exits 0 when the call has fewer steps than that.
func runUntilKilled() {
	killAt, err := strconv.Atoi(os.Getenv(killAtVariable))
	if err != nil {
		panic(err)
	}
	mounts, err := mount.New(mount.Config{Scratch: filepath.Join(os.Getenv(dirVariable), ScratchDir)})
	if err != nil {
		panic(err)
	}
	atStep := process.KillAt(killAt)
	step := func(Step) { atStep() }
	store, err := Open(Config{
		Dir: os.Getenv(dirVariable), KubeletDir: os.Getenv(rootVariable), Log: slog.New(slog.DiscardHandler),
		Mounts: steppingMounts{mounts, step}, BeforeStep: step,
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	switch os.Getenv(callVariable) {
	case "publish":
		err = store.Publish(ctx, Publication{Volume: "h1", Target: os.Getenv(targetVariable), Hold: Hold{PodName: "p", PodNamespace: "ns"}})
	case "unpublish":
		err = store.Unpublish(ctx, "h1", os.Getenv(targetVariable))
	case "remove":
		err = store.Remove(ctx, "h1", allow)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(0)
}

// killedAt runs the call in a child and reports whether step n was reached.
func (f *fixture) killedAt(call string, n int) bool {
	f.t.Helper()
	f.must(f.store.Close())
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", killAtVariable, n), callVariable+"="+call,
		dirVariable+"="+f.dir, rootVariable+"="+f.kubelet, targetVariable+"="+f.target("1"))
	killed := process.WasKilled(f.t, child)
	f.open()
	return killed
}

// walk kills call at each of its steps in turn, with a fresh node each time, and
// fails if there were fewer steps than expected: then the walk missed some.
func walk(t *testing.T, call string, atLeast int, prepare, check func(t *testing.T, f *fixture)) {
	t.Helper()
	for n := 1; ; n++ {
		f := newFixture(t)
		prepare(t, f)
		killed := f.killedAt(call, n)
		if !killed {
			if n <= atLeast {
				t.Errorf("%s has only %d steps, expected at least %d", call, n-1, atLeast)
			}
			return
		}
		t.Run(fmt.Sprintf("step %d", n), func(t *testing.T) { f.t = t; check(t, f) })
	}
}

func TestKilledAtEveryStepOfPublish(t *testing.T) {
	walk(t, "publish", 9,
		func(*testing.T, *fixture) {},
		func(t *testing.T, f *fixture) {
			// The next call repairs it: the same pod's, or another's after an unpublish.
			f.must(f.publish("h1", "1"))
			if n := f.mountsAt(f.target("1")); n != 1 {
				t.Errorf("%d mounts", n)
			}
			info, err := os.Stat(f.target("1"))
			f.must(err)
			if info.Mode().Perm() != 0o777 {
				t.Errorf("mode %o, want 777", info.Mode().Perm())
			}
			if err := f.publish("h1", "2"); !errors.Is(err, ErrHeld) {
				t.Errorf("%v, want ErrHeld", err)
			}
			f.must(f.unpublish("h1", "1"))
			f.must(f.publish("h1", "2"))
			f.checkTidy()
		})
}

func TestKilledAtEveryStepOfPublishThenAnotherPod(t *testing.T) {
	walk(t, "publish", 9,
		func(*testing.T, *fixture) {},
		func(t *testing.T, f *fixture) {
			f.must(f.unpublish("h1", "1"))
			f.must(f.publish("h1", "2"))
			if n := f.mountsAt(f.target("1")); n != 0 {
				t.Errorf("%d mounts of the pod that is gone", n)
			}
			f.checkTidy()
		})
}

func TestKilledAtEveryStepOfUnpublish(t *testing.T) {
	walk(t, "unpublish", 4,
		func(t *testing.T, f *fixture) {
			f.must(f.publish("h1", "1"))
			f.must(os.WriteFile(filepath.Join(f.target("1"), "file"), nil, 0o600))
		},
		func(t *testing.T, f *fixture) {
			f.must(f.unpublish("h1", "1"))
			if n := f.mountsAt(f.target("1")); n != 0 || f.exists(f.target("1")) {
				t.Errorf("%d mounts, target there: %t", n, f.exists(f.target("1")))
			}
			f.must(f.publish("h1", "2"))
			if !f.exists(filepath.Join(f.target("2"), "file")) {
				t.Error("the copy lost a file")
			}
			f.checkTidy()
		})
}

func TestKilledAtEveryStepOfRemoval(t *testing.T) {
	walk(t, "remove", 2,
		func(t *testing.T, f *fixture) {
			f.must(f.publish("h1", "1"))
			f.must(os.WriteFile(filepath.Join(f.target("1"), "file"), nil, 0o600))
			f.must(f.unpublish("h1", "1"))
		},
		func(t *testing.T, f *fixture) {
			// Either it is all there still, or wholly in the trash.
			if f.exists(f.copyPath("h1")) && !f.exists(filepath.Join(f.copyPath("h1"), "file")) {
				t.Error("half a copy is left")
			}
			if f.exists(f.copyPath("h1")) {
				f.must(f.store.Remove(t.Context(), "h1", allow))
			}
			f.must(f.publish("h1", "2"))
			if f.exists(filepath.Join(f.target("2"), "file")) {
				t.Error("the new copy shows the removed one's file")
			}
			f.checkTidy()
		})
}

// checkTidy fails if anything unfinished is left in the store.
func (f *fixture) checkTidy() {
	f.t.Helper()
	for _, dir := range []string{copiesDir, holdsDir} {
		entries, err := os.ReadDir(filepath.Join(f.dir, dir))
		f.must(err)
		if len(entries) != 1 || entries[0].Name() != "h1" {
			f.t.Errorf("%s holds %v, want h1 alone", dir, entries)
		}
	}
}
