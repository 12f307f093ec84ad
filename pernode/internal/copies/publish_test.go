package copies

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/target"
)

func TestPublishShowsTheSameCopyAgain(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	f.must(os.WriteFile(filepath.Join(f.target("1"), "file"), []byte("kept"), 0o600))
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "2"))
	data, err := os.ReadFile(filepath.Join(f.target("2"), "file"))
	if err != nil || string(data) != "kept" {
		t.Errorf("the second pod reads %q, %v", data, err)
	}
}

func TestPublishingAgainIsOneMount(t *testing.T) {
	f := newFixture(t)
	for range 5 {
		f.must(f.publish("h1", "1"))
	}
	f.restart()
	for range 3 {
		f.must(f.publish("h1", "1"))
	}
	if n := f.mountsAt(f.target("1")); n != 1 {
		t.Errorf("%d mounts, want 1", n)
	}
	f.must(f.unpublish("h1", "1"))
	if n := f.mountsAt(f.target("1")); n != 0 {
		t.Errorf("%d mounts after one unpublish", n)
	}
}

func TestASecondPodIsRefusedByName(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1"))
	for _, restarted := range []bool{false, true} {
		if restarted {
			f.restart()
		}
		err := f.publish("h1", "2")
		if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "ns/pod-1") {
			t.Errorf("restarted=%t: %v, want ErrHeld naming ns/pod-1", restarted, err)
		}
		if f.exists(f.target("2")) {
			t.Error("the refused pod's target was made")
		}
	}
	// The kubelet unpublishes a pod it gave up on, too: that must not let go of
	// the other one's hold.
	f.must(f.unpublish("h1", "2"))
	if err := f.publish("h1", "3"); !errors.Is(err, ErrHeld) {
		t.Errorf("after the refused pod's unpublish: %v, want ErrHeld", err)
	}
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "3"))
}

func TestReadOnlyIsTheMountsAlone(t *testing.T) {
	f := newFixture(t)
	f.must(f.publish("h1", "1", readOnly))
	if err := os.WriteFile(filepath.Join(f.target("1"), "x"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write through a read-only publish: %v, want EROFS", err)
	}
	f.must(os.WriteFile(filepath.Join(f.copyPath("h1"), "y"), nil, 0o600))
	if err := f.publish("h1", "1"); !errors.Is(err, ErrPublishedOtherwise) {
		t.Errorf("read-write over read-only: %v, want ErrPublishedOtherwise", err)
	}
	if err := os.WriteFile(filepath.Join(f.target("1"), "x"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("the mount changed: %v", err)
	}
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "1"))
	f.must(os.WriteFile(filepath.Join(f.target("1"), "x"), nil, 0o600))
	if err := f.publish("h1", "1", readOnly); !errors.Is(err, ErrPublishedOtherwise) {
		t.Errorf("read-only over read-write: %v, want ErrPublishedOtherwise", err)
	}
}

func TestNewCopyIsOpenToAllWhateverTheUmask(t *testing.T) {
	f := newFixture(t)
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	f.must(f.publish("h1", "1"))
	info, err := os.Stat(f.copyPath("h1"))
	f.must(err)
	if info.Mode().Perm() != 0o777 {
		t.Errorf("mode %o, want 777", info.Mode().Perm())
	}
	f.must(syscall.Chmod(f.target("1"), 0o2770))
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "1"))
	info, err = os.Stat(f.target("1"))
	f.must(err)
	if info.Mode().Perm() != 0o770 || info.Mode()&fs.ModeSetgid == 0 {
		t.Errorf("the owner's mode became %v", info.Mode())
	}
	store, err := os.Stat(f.dir)
	f.must(err)
	if store.Mode().Perm() != 0o700 {
		t.Errorf("the store has mode %o, want 700", store.Mode().Perm())
	}
}

// A default ACL above the copies is inherited, and says more than a mode.
func TestNewCopyIsOpenToAllWhateverTheDefaultACL(t *testing.T) {
	f := newFixture(t)
	acl := binary.LittleEndian.AppendUint32(nil, 2) // The version; then tag, permissions and id of each entry.
	for _, entry := range [][3]uint32{{0x01, 7, math.MaxUint32}, {0x02, 7, 4321}, {0x04, 5, math.MaxUint32}, {0x10, 7, math.MaxUint32}, {0x20, 5, math.MaxUint32}} {
		acl = binary.LittleEndian.AppendUint16(acl, uint16(entry[0]))
		acl = binary.LittleEndian.AppendUint16(acl, uint16(entry[1]))
		acl = binary.LittleEndian.AppendUint32(acl, entry[2])
	}
	err := unix.Setxattr(filepath.Join(f.dir, copiesDir), "system.posix_acl_default", acl, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("the file system has no ACLs")
	}
	f.must(err)
	f.must(f.publish("h1", "1"))
	root, err := os.Open(f.target("1"))
	f.must(err)
	defer root.Close()
	// A pod of any user, and of the group that the copy has, root's.
	touch := exec.Command("touch", "/proc/self/fd/3/file")
	touch.ExtraFiles = []*os.File{root}
	touch.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 0}}
	if out, err := touch.CombinedOutput(); err != nil {
		t.Errorf("a pod of group 0 cannot write: %v: %s", err, out)
	}
}

func TestWhatIsNoDirectoryIsRefusedNotFollowed(t *testing.T) {
	f := newFixture(t)
	outside := t.TempDir()
	f.must(os.Symlink(outside, f.copyPath("evil")))
	f.must(os.WriteFile(f.copyPath("file"), nil, 0o600))
	for _, volume := range []string{"evil", "file"} {
		if err := f.publish(volume, "1"); !errors.Is(err, ErrNotADirectory) {
			t.Errorf("%s: %v, want ErrNotADirectory", volume, err)
		}
	}
	if n := f.mountsAt(f.target("1")); n != 0 || f.store.hasHold("evil") {
		t.Errorf("%d mounts, hold %t", n, f.store.hasHold("evil"))
	}
	if err := f.publish("../evil", "1"); !errors.Is(err, handle.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
}

func TestAFailedPublishHoldsNothing(t *testing.T) {
	f := newFixture(t)
	f.must(os.WriteFile(f.target("1"), []byte("x"), 0o600))
	first := f.publish("h1", "1")
	if first == nil {
		t.Fatal("published on a regular file")
	}
	for range 5 {
		if err := f.publish("h1", "1"); err == nil || err.Error() != first.Error() {
			t.Fatalf("the message changed: %v, before: %v", err, first)
		}
	}
	if f.store.hasHold("h1") {
		t.Error("a hold is left")
	}
	f.must(f.publish("h1", "2"))
	if data, _ := os.ReadFile(f.target("1")); string(data) != "x" {
		t.Error("the file at the target was changed")
	}
}

func TestAMissingParentIsAnError(t *testing.T) {
	f := newFixture(t)
	err := f.store.Publish(t.Context(), Publication{Volume: "h1", Target: filepath.Join(f.kubelet, "no", "such", "mount")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
	for _, at := range []string{"relative/mount", "/" + strings.Repeat("a/", 2100)} {
		if err := f.store.Publish(t.Context(), Publication{Volume: "h1", Target: at}); !errors.Is(err, target.ErrTarget) {
			t.Errorf("%.20q: %v, want ErrTarget", at, err)
		}
	}
}

func TestAPrivateKubeletDirectoryIsRefused(t *testing.T) {
	f := newFixture(t)
	f.command("mount", "--make-private", f.kubelet)
	err := f.publish("h1", "1")
	if !errors.Is(err, mount.ErrNotShared) || !strings.Contains(err.Error(), "mount --make-rshared "+f.kubelet+`"`) {
		t.Errorf("%v, want ErrNotShared with advice on %s", err, f.kubelet)
	}
	if n := f.mountsAt(f.target("1")); n != 0 || f.store.hasHold("h1") || f.exists(f.target("1")) {
		t.Error("something is left of the refused publish")
	}
}

func TestSpellingsOfATargetAreOne(t *testing.T) {
	f := newFixture(t)
	link := filepath.Join(t.TempDir(), "kl")
	f.must(os.Symlink(f.kubelet, link))
	real := f.target("1")
	spelled := strings.Replace(real, f.kubelet, link, 1)
	for _, target := range []string{spelled, real, strings.ReplaceAll(real, "/pods/", "//pods/./")} {
		f.must(f.publish("h1", "1", func(p *Publication) { p.Target = target }))
	}
	if n := f.mountsAt(real); n != 1 {
		t.Errorf("%d mounts, want 1", n)
	}
	f.must(f.store.Unpublish(t.Context(), "h1", spelled))
	if n := f.mountsAt(real); n != 0 || f.exists(real) {
		t.Errorf("%d mounts left", n)
	}
}

func TestFiftyPodsRaceForOneCopy(t *testing.T) {
	f := newFixture(t)
	pods := make([]string, 50)
	for i := range pods {
		pods[i] = strings.Repeat("a", i+1)
		f.target(pods[i])
	}
	results := make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() { results[i] = f.publish("h1", pod) })
	}
	group.Wait()
	won := 0
	for i, err := range results {
		switch {
		case err == nil:
			won++
			if n := f.mountsAt(f.target(pods[i])); n != 1 {
				t.Errorf("the winner has %d mounts", n)
			}
		case !errors.Is(err, ErrHeld):
			t.Errorf("%v, want ErrHeld", err)
		}
	}
	if won != 1 {
		t.Errorf("%d pods have the copy", won)
	}
}

func TestABusyVolumeAnswersAtTheDeadline(t *testing.T) {
	f := newFixture(t)
	unlock, err := f.store.handles.Lock(t.Context(), "h1")
	f.must(err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.store.Publish(ctx, Publication{Volume: "h1", Target: f.target("1")}); !errors.Is(err, keyedmutex.ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
	f.must(f.publish("h2", "2"))
}

func TestAFullStoreStillServesItsCopies(t *testing.T) {
	f := newFixture(t)
	f.must(f.store.Close())
	f.command("mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=16", "small", f.dir)
	t.Cleanup(func() { _ = f.store.Close(); f.command("umount", "-l", f.dir) })
	f.open()
	f.must(f.publish("h1", "1"))
	f.must(f.unpublish("h1", "1"))
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(f.copyPath("h1"), fmt.Sprint(i)), nil, 0o600); err != nil {
			break
		}
	}
	f.must(f.publish("h1", "1"))
	if err := f.publish("h1", "2"); !errors.Is(err, ErrHeld) {
		t.Errorf("a second pod on a full store: %v, want ErrHeld", err)
	}
	f.must(f.publish("h1", "1"))
	if err := f.publish("h2", "3"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a new copy on a full store: %v, want ENOSPC", err)
	}
	f.must(os.Remove(filepath.Join(f.target("1"), "0")))
	f.must(f.unpublish("h1", "1"))
	f.must(f.publish("h1", "2"))
}
