package watch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// The application writes through another mount of the tree.
func TestWritesThroughABindMount(t *testing.T) {
	mountns.Require(t)
	dir := mountns.SharedDir(t)
	root, target := filepath.Join(dir, "tree"), filepath.Join(dir, "target")
	for _, made := range []string{filepath.Join(root, "d"), target} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := start(t, New(), root)
	defer o.w.Stop()
	o.calm()
	if err := unix.Mount(root, target, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(target, "d/f"), "x")
	if paths, _ := o.announced(t); !slices.Equal(paths, []string{"d/f"}) {
		t.Fatalf("announced %q", paths)
	}
	// A made directory is watched, and written to through the mount as well.
	if err := os.MkdirAll(filepath.Join(target, "e/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.calm()
	write(t, filepath.Join(target, "e/e/f"), "x")
	if paths, _ := o.announced(t); !slices.Equal(paths, []string{"e/e/f"}) {
		t.Fatalf("announced %q", paths)
	}
}

// Filesystems that number their devices and inodes in their own ways.
func TestOtherFilesystems(t *testing.T) {
	mountns.Require(t)
	for kind, mount := range map[string]func(t *testing.T, dir string) error{
		"tmpfs": func(_ *testing.T, dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "") },
		"overlay": func(t *testing.T, dir string) error {
			layers := t.TempDir()
			if err := unix.Mount("tmpfs", layers, "tmpfs", 0, ""); err != nil {
				return err
			}
			t.Cleanup(func() { mountns.UnmountBelow(t, layers) })
			for _, layer := range []string{"lower/old", "upper", "work"} {
				if err := os.MkdirAll(filepath.Join(layers, layer), 0o755); err != nil {
					return err
				}
			}
			return unix.Mount("overlay", dir, "overlay", 0,
				"lowerdir="+layers+"/lower,upperdir="+layers+"/upper,workdir="+layers+"/work")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			root := filepath.Join(mountns.SharedDir(t), "root")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := mount(t, root); err != nil {
				t.Skipf("no %s can be mounted here: %v", kind, err)
			}
			grow(t, root, 3)
			o := start(t, New(), root)
			defer o.w.Stop()
			o.calm()
			write(t, filepath.Join(root, "d1/f"), "x2")
			if paths, _ := o.announced(t); !slices.Contains(paths, "d1/f") {
				t.Fatalf("announced %q", paths)
			}
		})
	}
}

// The root of btrfs has other device numbers in stat(2) than in inotify's.
func TestRootDeviceIsTranslated(t *testing.T) {
	h := held{sorted: []Inode{{Device: 7, Number: 256}}, from: Inode{Device: 0x2f, Number: 256}, to: 7}
	for dir, want := range map[Inode]bool{
		{0x2f, 256}: true,
		{0x2f, 257}: false,
		{0x30, 256}: false, // Another subvolume's.
	} {
		if got := h.has(dir); got != want {
			t.Errorf("%+v is watched: %t, want %t", dir, got, want)
		}
	}
}
