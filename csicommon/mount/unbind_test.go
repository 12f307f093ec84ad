package mount

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUnbindSucceedsWhateverIsLeft(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, n *node, target string){
		"bound once": func(t *testing.T, n *node, target string) {
			n.mustBind(t, n.volume(t, "v"), target, Options{})
		},
		"stacked by a driver that forgot": func(t *testing.T, n *node, target string) {
			for range 5 {
				mustMount(t, n.volume(t, "v"), target, "", unix.MS_BIND)
			}
		},
		"stacked filesystems of other kinds": func(t *testing.T, n *node, target string) {
			n.mustBind(t, n.volume(t, "v"), target, Options{ReadOnly: true})
			mustMount(t, "tmpfs", target, "tmpfs", 0)
			mustMount(t, target, target, "", unix.MS_BIND)
		},
		"unmounted by hand": func(*testing.T, *node, string) {},
		"removed by hand": func(t *testing.T, _ *node, target string) {
			remove(t, target)
		},
		"parent removed by hand": func(t *testing.T, _ *node, target string) {
			remove(t, target)
			remove(t, filepath.Dir(target))
		},
		"source removed": func(t *testing.T, n *node, target string) {
			volume := n.volume(t, "gone")
			n.mustBind(t, volume, target, Options{})
			remove(t, volume)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, n *node) {
				kept := write(t, filepath.Join(n.volume(t, "v"), "kept"))
				target := n.target(t, "pod/mount")
				prepare(t, n, target)
				for range 3 {
					n.mustUnbind(t, target)
					requireMounts(t, target, 0)
				}
				if _, err := os.Stat(kept); err != nil {
					t.Errorf("Unbind took something from the store: %v", err)
				}
				if n.log.Len() != 0 {
					t.Errorf("logged %s", n.log)
				}
			})
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestUnbindRefusesPathsThatAreNoTarget(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		for _, target := range []string{"", "/", "//", "/.", "relative", "../up", "/proc/.."} {
			if err := n.Unbind(target); !errors.Is(err, ErrPath) {
				t.Errorf("Unbind(%q): %v, want ErrPath", target, err)
			}
		}
		if err := n.Unbind(filepath.Join(write(t, filepath.Join(n.kubelet, "file")), "mount")); err != nil {
			t.Errorf("Unbind below a regular file: %v", err)
		}
	})
}

func TestUnbindLeavesFilesAndLinks(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		other := n.target(t, "other")
		n.mustBind(t, n.volume(t, "v"), other, Options{})
		link, file, boundFile := filepath.Join(n.kubelet, "link"), filepath.Join(n.kubelet, "file"), filepath.Join(n.kubelet, "bound")
		write(t, file)
		mustMount(t, write(t, filepath.Join(n.store, "source")), write(t, boundFile), "", unix.MS_BIND)
		if err := os.Symlink(other, link); err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{link, link + "/", file, boundFile} {
			n.log.Reset()
			if err := n.Unbind(target); err != nil {
				t.Errorf("Unbind(%q): %v", target, err)
			}
			if _, err := os.Lstat(strings.TrimSuffix(target, "/")); err != nil {
				t.Errorf("%q is gone: %v", target, err)
			}
			if !strings.Contains(n.log.String(), "level=WARN") || !strings.Contains(n.log.String(), "target=") {
				t.Errorf("Unbind(%q) logged %q, want a warning with the target", target, n.log)
			}
		}
		requireMounts(t, boundFile, 0)
		requireMounts(t, other, 1)
	})
}

func TestUnbindDeletesNothingThroughTheTarget(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		target := n.target(t, "t")
		for _, name := range []string{"b", "a\nb", "c"} {
			write(t, filepath.Join(target, name))
		}
		n.mustBind(t, n.volume(t, "v"), target, Options{})
		first, second := n.Unbind(target), n.Unbind(target)
		if !errors.Is(first, ErrNotEmpty) || second == nil || first.Error() != second.Error() {
			t.Fatalf("got %v and then %v, want the same ErrNotEmpty", first, second)
		}
		for _, want := range []string{target, `"a\nb"`} {
			if !strings.Contains(first.Error(), want) {
				t.Errorf("the error does not name %s: %v", want, first)
			}
		}
		requireMounts(t, target, 0)
		if entries, err := os.ReadDir(target); err != nil || len(entries) != 3 {
			t.Errorf("the target holds %v, %v", entries, err)
		}
	})
}

func TestBusyMountStaysMounted(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		target := n.target(t, "t")
		n.mustBind(t, n.volume(t, "v"), target, Options{})
		pod := exec.Command("cat")
		pod.Dir = target
		input, err := pod.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := pod.Start(); err != nil {
			t.Fatal(err)
		}
		first, second := n.Unbind(target), n.Unbind(target)
		if !errors.Is(first, ErrBusy) || second == nil || first.Error() != second.Error() {
			t.Errorf("got %v and then %v, want the same ErrBusy", first, second)
		}
		requireMounts(t, target, 1)
		input.Close()
		if err := pod.Wait(); err != nil {
			t.Fatal(err)
		}
		n.mustUnbind(t, target)
	})
}

func TestUnbindWithAMountBelowIsBusy(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		target := n.target(t, "t")
		n.mustBind(t, n.volume(t, "v"), target, Options{})
		below := mkdir(t, filepath.Join(target, "below"))
		mustMount(t, "tmpfs", below, "tmpfs", 0)
		if err := n.Unbind(target); !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v, want ErrBusy", err)
		}
		requireMounts(t, target, 1)
		requireMounts(t, below, 1)
	})
}

func TestConcurrentUnbindOfOneTarget(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		target := n.target(t, "t")
		for range 20 {
			mkdir(t, target)
			for range 3 {
				mustMount(t, n.volume(t, "v"), target, "", unix.MS_BIND)
			}
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					if err := n.Unbind(target); err != nil {
						t.Errorf("Unbind: %v", err)
					}
				})
				all.Go(func() {
					// A look at the target keeps its mount busy for a moment.
					if _, err := n.IsMount(target); err != nil {
						t.Errorf("IsMount: %v", err)
					}
				})
			}
			all.Wait()
			requireMounts(t, target, 0)
			if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("the target is still there: %v", err)
			}
		}
	})
}

func TestConcurrentBindsOfOneTargetGiveOneMount(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		target, source := n.target(t, "t"), handle(t, n.volume(t, "v"))
		var all sync.WaitGroup
		bound := make(chan struct{}, 16)
		for range cap(bound) {
			all.Go(func() {
				switch err := n.Bind(source, target, Options{}); {
				case err == nil:
					bound <- struct{}{}
				case !errors.Is(err, ErrMounted):
					t.Errorf("Bind: %v", err)
				}
			})
		}
		all.Wait()
		requireMounts(t, target, 1)
		if len(bound) != 1 {
			t.Errorf("%d binds succeeded", len(bound))
		}
	})
}

func TestClassicClearsWhatAKilledProcessLeft(t *testing.T) {
	n := newClassic(t)
	way := classic{&room{path: filepath.Join(n.scratch, roomName)}}
	volume := n.volume(t, "v")
	// The state between the staging and the removal of a bind.
	if err := way.prepare(); err != nil {
		t.Fatal(err)
	}
	staging := mkdir(t, filepath.Join(way.path, stagingPrefix+"123"))
	if err := stage(handle(t, volume), staging, Options{}, 0); err != nil {
		t.Fatal(err)
	}
	kept := write(t, filepath.Join(volume, "kept"))
	if got := n.points(t, n.locate(t, volume)); len(got) != 1 {
		t.Fatalf("the test's left-over does not show: %v", got)
	}
	for range 2 {
		if err := (&room{path: way.path}).clear(); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.points(t, n.locate(t, volume)); len(got) != 0 {
		t.Errorf("still shown at %v", got)
	}
	requireMounts(t, way.path, 0)
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(n.scratch); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the scratch directory: %v, %v, want mode 0700", info.Mode(), err)
	}
	n.mustBind(t, volume, n.target(t, "t"), Options{})
}
