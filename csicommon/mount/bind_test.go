package mount

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

func TestBindShowsTheDirectoryAndUnbindTakesItAway(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume, target := n.volume(t, "v"), n.target(t, "t")
		// The classic way keeps one private mount for good; it is made by the first bind.
		n.mustBind(t, volume, target, Options{})
		n.mustUnbind(t, target)
		before := mountCount(t)

		n.target(t, "t")
		n.mustBind(t, volume, target, Options{})
		requireMounts(t, target, 1)
		write(t, filepath.Join(target, "f"))
		if _, err := os.Stat(filepath.Join(volume, "f")); err != nil {
			t.Fatalf("what was written at the target is not in the store: %v", err)
		}
		options := mountsAt(t, target)[0].Options
		for _, option := range []string{"rw", "nosuid", "nodev"} {
			if !hasOption(options, option) {
				t.Errorf("the mount is %q, want %s", options, option)
			}
		}
		n.mustUnbind(t, target)
		if after := mountCount(t); after != before {
			t.Errorf("%d mounts more than before", after-before)
		}
		if _, err := os.Stat(filepath.Join(volume, "f")); err != nil {
			t.Errorf("Unbind took something from the store: %v", err)
		}
	})
}

func TestReadOnlyBindRefusesWritesOnlyThroughTheTarget(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume, target := n.volume(t, "v"), n.target(t, "t")
		write(t, filepath.Join(volume, "f"))
		n.mustBind(t, volume, target, Options{ReadOnly: true})

		file := filepath.Join(target, "f")
		for what, err := range map[string]error{
			"touch":    os.WriteFile(filepath.Join(target, "x"), nil, 0o600),
			"append":   appendTo(file),
			"chmod":    os.Chmod(file, 0o644),
			"link":     os.Link(file, filepath.Join(target, "g")),
			"mkdir":    os.Mkdir(filepath.Join(target, "d"), 0o700),
			"unlink":   os.Remove(file),
			"setxattr": unix.Setxattr(file, "user.a", []byte("1"), 0),
		} {
			if !errors.Is(err, unix.EROFS) {
				t.Errorf("%s through a read-only target: %v, want EROFS", what, err)
			}
		}
		write(t, filepath.Join(volume, "y"))
		info := mountsAt(t, target)[0]
		if !strings.HasPrefix(info.Options, "ro") || !strings.HasPrefix(info.VFSOptions, "rw") {
			t.Errorf("the mount is %q of a filesystem that is %q, want ro of rw", info.Options, info.VFSOptions)
		}
		n.mustUnbind(t, target)
		n.target(t, "t")
		n.mustBind(t, volume, target, Options{})
		write(t, filepath.Join(target, "x"))
	})
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func TestBindFlags(t *testing.T) {
	for name, row := range map[string]struct {
		o            Options
		store        uintptr // flags of the mount the source lies on
		want, absent []string
	}{
		"none asked for":             {want: []string{"rw", "nosuid", "nodev", "relatime"}, absent: []string{"noexec", "noatime"}},
		"all asked for":              {o: Options{ReadOnly: true, NoExec: true, NoAtime: true}, want: []string{"ro", "nosuid", "nodev", "noexec", "noatime"}},
		"a noexec store stays so":    {store: unix.MS_NOEXEC, want: []string{"rw", "noexec"}},
		"a read-only store does not": {store: unix.MS_RDONLY, want: []string{"rw"}, absent: []string{"ro"}},
		"read-only of one that is":   {store: unix.MS_RDONLY, o: Options{ReadOnly: true}, want: []string{"ro"}},
		"a noatime store stays so":   {store: unix.MS_NOATIME, want: []string{"noatime"}},
		"nodiratime stays":           {store: unix.MS_NODIRATIME, o: Options{ReadOnly: true}, want: []string{"ro", "nodiratime", "relatime"}},
		"strictatime stays":          {store: unix.MS_STRICTATIME, o: Options{ReadOnly: true}, absent: []string{"relatime", "noatime"}},
		"noatime wins over relatime": {store: unix.MS_RELATIME, o: Options{NoAtime: true}, want: []string{"noatime"}, absent: []string{"relatime"}},
		"noatime wins over strict":   {store: unix.MS_STRICTATIME, o: Options{NoAtime: true}, want: []string{"noatime"}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, n *node) {
				volume, target := n.volume(t, "v"), n.target(t, "t")
				if row.store != 0 {
					mustMount(t, "none", n.store, "", unix.MS_REMOUNT|unix.MS_BIND|row.store)
				}
				n.mustBind(t, volume, target, row.o)
				options := mountsAt(t, target)[0].Options
				for _, option := range row.want {
					if !hasOption(options, option) {
						t.Errorf("the mount is %q, want %s", options, option)
					}
				}
				for _, option := range row.absent {
					if hasOption(options, option) {
						t.Errorf("the mount is %q, want no %s", options, option)
					}
				}
			})
		})
	}
}

func TestBindNeverStacks(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		target := n.target(t, "t")
		n.mustBind(t, n.volume(t, "v"), target, Options{})
		for _, volume := range []string{"v", "w"} {
			err := n.Bind(handle(t, n.volume(t, volume)), target, Options{ReadOnly: true})
			if !errors.Is(err, ErrMounted) {
				t.Fatalf("a second bind: %v, want ErrMounted", err)
			}
		}
		requireMounts(t, target, 1)
		write(t, filepath.Join(target, "still writable"))
	})
}

func TestBindRefusesWhatIsNoDirectory(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		outside := mkdir(t, filepath.Join(n.kubelet, "outside"))
		link, file, fifo := filepath.Join(n.kubelet, "link"), filepath.Join(n.kubelet, "file"), filepath.Join(n.kubelet, "fifo")
		write(t, file)
		if err := errors.Join(os.Symlink(outside, link), unix.Mkfifo(fifo, 0o600)); err != nil {
			t.Fatal(err)
		}
		volume := n.volume(t, "v")
		before := mountCount(t)
		for target, row := range map[string]struct {
			is   error
			says string
		}{
			link:                                {ErrNotDirectory, "symbolic link"},
			link + "/":                          {ErrNotDirectory, "symbolic link"},
			link + "/.":                         {ErrNotDirectory, "symbolic link"},
			file:                                {ErrNotDirectory, "regular file"},
			fifo:                                {ErrNotDirectory, "special file"},
			filepath.Join(n.kubelet, "missing"): {fs.ErrNotExist, "open the target"},
			filepath.Join(n.kubelet, "a", "b"):  {fs.ErrNotExist, "parent"},
			"/":                                 {ErrPath, "root directory"},
			"relative":                          {ErrPath, "absolute"},
		} {
			first := n.Bind(handle(t, volume), target, Options{})
			second := n.Bind(handle(t, volume), target, Options{})
			if !errors.Is(first, row.is) || !strings.Contains(first.Error(), row.says) {
				t.Errorf("Bind onto %q: %v, want %v that says %q", target, first, row.is, row.says)
			} else if first.Error() != second.Error() {
				t.Errorf("Bind onto %q says %q and then %q", target, first, second)
			}
		}
		if after := mountCount(t); after != before {
			t.Errorf("%d mounts more than before", after-before)
		}
	})
}

func TestFailedBindLeavesNothingAndSaysTheSameEachTime(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		file, target := write(t, filepath.Join(n.store, "file")), n.target(t, "t")
		first := n.Bind(handle(t, file), target, Options{})
		before := mountCount(t)
		handle(t, n.store) // another descriptor number for the next one
		second := n.Bind(handle(t, file), target, Options{})
		if first == nil || second == nil || first.Error() != second.Error() {
			t.Fatalf("binding a file says %v and then %v", first, second)
		}
		if after := mountCount(t); after != before {
			t.Errorf("%d mounts more than before", after-before)
		}
		requireMounts(t, target, 0)
		if left, _ := filepath.Glob(filepath.Join(n.scratch, "*", "*")); len(left) > 0 {
			t.Errorf("left in the scratch directory: %q", left)
		}
		n.mustBind(t, n.volume(t, "v"), target, Options{})
	})
}

// forgetful binds as asked, but for the flags.
type forgetful struct{ binder }

func (f forgetful) bind(source, target *os.File, _ Options) error {
	return f.binder.bind(source, target, Options{})
}

func TestReadOnlyIsVerified(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		n.binds = forgetful{n.binds}
		target := n.target(t, "t")
		if err := n.Bind(handle(t, n.volume(t, "v")), target, Options{ReadOnly: true}); !errors.Is(err, ErrReadOnly) {
			t.Fatalf("a bind that is not read-only: %v, want ErrReadOnly", err)
		}
		requireMounts(t, target, 0)
		if points := n.points(t, n.locate(t, n.volume(t, "v"))); len(points) != 0 {
			t.Errorf("the table shows %v", points)
		}
	})
}

// late binds and then fails.
type late struct{ binder }

func (l late) bind(source, target *os.File, o Options) error {
	return errors.Join(l.binder.bind(source, target, o), unix.EIO)
}

func TestFailureAfterAttachingIsUndone(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		n.binds = late{n.binds}
		target := n.target(t, "t")
		if err := n.Bind(handle(t, n.volume(t, "v")), target, Options{}); !errors.Is(err, unix.EIO) {
			t.Fatalf("got %v, want EIO", err)
		}
		requireMounts(t, target, 0)
	})
}

func TestBindOfDeletedSourceIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume, target := n.volume(t, "v"), n.target(t, "t")
		source := handle(t, volume)
		if err := os.Remove(volume); err != nil {
			t.Fatal(err)
		}
		if err := n.Bind(source, target, Options{}); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("got %v, want fs.ErrNotExist", err)
		}
		requireMounts(t, target, 0)
	})
}

func TestMountsBelowStayOnTheirSide(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume, target := n.volume(t, "v"), n.target(t, "t")
		inStore, inPod := mkdir(t, filepath.Join(volume, "store-side")), mkdir(t, filepath.Join(volume, "pod-side"))
		mustMount(t, "tmpfs", inStore, "tmpfs", 0)
		n.mustBind(t, volume, target, Options{})
		mustMount(t, "tmpfs", filepath.Join(target, "pod-side"), "tmpfs", 0)
		write(t, filepath.Join(target, "pod-side", "secret"))

		requireMounts(t, filepath.Join(target, "store-side"), 0)
		requireMounts(t, inPod, 0)
		if entries, err := os.ReadDir(inPod); err != nil || len(entries) != 0 {
			t.Errorf("what a pod mounted shows in the store: %v, %v", entries, err)
		}
	})
}

// startPeer returns a process in a namespace copied from this one, as the kubelet
// is for a driver. It ends with the test.
func startPeer(t *testing.T) int {
	t.Helper()
	peer := exec.Command("cat")
	peer.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	input, err := peer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); _ = peer.Wait() })
	return peer.Process.Pid
}

func TestBindReachesThePeersWithItsFlags(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		peer := startPeer(t)
		target := n.target(t, "t")
		n.mustBind(t, n.volume(t, "v"), target, Options{ReadOnly: true})
		seen := mountsOf(t, peer, target)
		if len(seen) != 1 || !hasOption(seen[0].Options, "ro") || !hasOption(seen[0].Options, "nosuid") {
			t.Fatalf("the peer sees %+v, want one mount that is ro,nosuid", seen)
		}
		through := "/proc/" + strconv.Itoa(peer) + "/root" + target + "/x"
		if err := os.WriteFile(through, nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("writing in the peer's namespace: %v, want EROFS", err)
		}
		n.mustUnbind(t, target)
		if seen := mountsOf(t, peer, target); len(seen) != 0 {
			t.Errorf("the peer still sees %+v", seen)
		}
	})
}

// A staging bind that reached the kubelet's namespace would stay there when this
// process is killed, writable.
func TestStagingReachesNoPeer(t *testing.T) {
	n := newClassic(t)
	peer := startPeer(t)
	way := classic{&room{path: filepath.Join(n.scratch, roomName)}}
	if err := way.prepare(); err != nil {
		t.Fatal(err)
	}
	staging := mkdir(t, filepath.Join(way.path, stagingPrefix+"1"))
	if err := stage(handle(t, n.volume(t, "v")), staging, Options{}, 0); err != nil {
		t.Fatal(err)
	}
	requireMounts(t, staging, 1)
	if seen := mountsOf(t, peer, staging); len(seen) != 0 {
		t.Errorf("the peer sees %+v", seen)
	}
}

func mountsOf(t *testing.T, pid int, point string) []*mountinfo.Info {
	t.Helper()
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	infos, err := mountinfo.GetMountsFromReader(f, mountinfo.SingleEntryFilter(point))
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

func TestOneTargetUnderEverySpelling(t *testing.T) {
	long := strings.Repeat("r", 200) + "/" + strings.Repeat("p", 36) + "/" + strings.Repeat("v", 253) + "/" + strings.Repeat("m", 111)
	for name, root := range map[string]string{
		"plain":                "real",
		"space and backslash":  `kube let\root`,
		"written-out escape":   `a\040b`,
		"tab and line break":   "a\tb\nc",
		"600 bytes":            long,
		"invalid UTF-8":        "a\xff\xfeb",
		"named like the mark":  "kl (deleted)",
		"named like the other": "kl//deleted",
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, n *node) {
				pod := n.target(t, filepath.Join(root, "pods", "1"))
				link := filepath.Join(n.kubelet, "kl")
				if name == "named like the other" {
					link += "-link"
				}
				if err := os.Symlink(root, link); err != nil {
					t.Fatal(err)
				}
				target, volume := mkdir(t, filepath.Join(pod, "mount")), n.volume(t, root)
				viaLink := link + "/pods/1/mount"
				untidy := link + "/.//pods/./1//mount/"

				n.mustBind(t, volume, viaLink, Options{})
				requireMounts(t, target, 1)
				for _, spelling := range []string{target, viaLink, untidy} {
					if mounted, err := n.IsMount(spelling); err != nil || !mounted {
						t.Errorf("IsMount(%q) = %t, %v", spelling, mounted, err)
					}
					if m, mounted, err := n.At(spelling); err != nil || !mounted || m.Point != target {
						t.Errorf("At(%q) = %+v, %t, %v", spelling, m, mounted, err)
					}
					if err := n.Bind(handle(t, volume), spelling, Options{}); !errors.Is(err, ErrMounted) {
						t.Errorf("Bind onto %q: %v, want ErrMounted", spelling, err)
					}
				}
				if points := n.points(t, n.locate(t, volume)); len(points) != 1 || points[target] != 1 {
					t.Errorf("Showing found %v, want %q", points, target)
				}
				n.mustUnbind(t, untidy)
				requireMounts(t, target, 0)
			})
		})
	}
}
