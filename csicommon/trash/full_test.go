package trash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

func TestAFullDiskIsFreed(t *testing.T) {
	mountns.Require(t)
	for _, row := range []struct {
		name  string
		mount func(t *testing.T, at string)
		fill  func(dir string) error // Fails in the end.
	}{
		{"tmpfs without an inode", tmpfs("nr_inodes=200"), directories},
		{"ext4 without an inode", ext4("-N", "64"), directories},
		{"ext4 without a block", ext4(), blocks},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := &place{path: t.TempDir()}
			row.mount(t, p.path)
			t.Cleanup(func() { check(t, unix.Unmount(p.path, unix.MNT_DETACH)) })
			p.bin = filepath.Join(p.path, "bin")
			for _, name := range []string{p.bin, filepath.Join(p.path, "v"), filepath.Join(p.path, "file")} {
				check(t, os.Mkdir(name, 0o755))
			}
			dir, err := os.Open(p.path)
			check(t, err)
			defer dir.Close()
			p.dir = dir
			p.reopen(t)
			if err := row.fill(filepath.Join(p.path, "v")); !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("filled it: %v", err)
			}
			if err := os.Mkdir(filepath.Join(p.path, "another"), 0o755); !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("a directory can be made: %v", err)
			}
			check(t, p.Bin.Put(p.dir, "v"))
			check(t, p.Bin.Put(p.dir, "file"))
			for _, name := range []string{"v", "file"} {
				if !missing(filepath.Join(p.path, name)) {
					t.Errorf("%s is still there after Put", name)
				}
			}
			if got := p.Bin.Pending(); got != 2 {
				t.Errorf("%d pending", got)
			}
			p.reopen(t) // What an earlier process has put there is known, too.
			p.run(t)
			p.emptied(t)
			until(t, "both are told", func() bool { return len(p.all()) == 2 })
			if all := p.all(); all[0].Name != "v" || all[0].Inodes < 2 || all[1].Name != "file" || all[1].Inodes != 1 {
				t.Errorf("removed %+v", all)
			}
			check(t, os.Mkdir(filepath.Join(p.path, "another"), 0o755))
		})
	}
}

func tmpfs(options string) func(*testing.T, string) {
	return func(t *testing.T, at string) {
		t.Helper()
		check(t, unix.Mount("none", at, "tmpfs", 0, options))
	}
}

func ext4(options ...string) func(*testing.T, string) {
	return func(t *testing.T, at string) {
		t.Helper()
		image := filepath.Join(t.TempDir(), "image")
		check(t, os.WriteFile(image, nil, 0o600))
		check(t, os.Truncate(image, 16<<20))
		mkfs := append(append([]string{"-q", "-m", "0"}, options...), image)
		if out, err := exec.Command("mkfs.ext4", mkfs...).CombinedOutput(); err != nil {
			t.Skipf("making an ext4: %v: %s", err, out)
		}
		if out, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
			t.Skipf("mounting an image, which takes a loop device: %v: %s", err, out)
		}
	}
}

func directories(dir string) error {
	for i := 0; ; i++ {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755); err != nil {
			return err
		}
	}
}

// blocks takes them all: big ones first, then by files of a single one.
func blocks(dir string) error {
	for size := 1 << 20; ; size /= 2 {
		var err error
		for i := 0; err == nil; i++ {
			err = allocated(filepath.Join(dir, fmt.Sprintf("%d-%d", size, i)), size)
		}
		if size <= 1<<10 || !errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
}

func allocated(path string, size int) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fallocate(int(file.Fd()), 0, 0, int64(size)), file.Close())
}

func TestAFailedSyncIsNoFailedPut(t *testing.T) {
	p := newPlace(t)
	check(t, os.Mkdir(filepath.Join(p.path, "v"), 0o755))
	p.Bin.sync = func(*os.File) error { return unix.ENOSPC }
	check(t, p.Bin.Put(p.dir, "v"))
	if text := p.lines.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "not durably") {
		t.Errorf("logged %q", text)
	}
	if err := p.Bin.Put(p.dir, "v"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second time: %v", err)
	}
	p.run(t)
	p.emptied(t)
}

// TestThePathOfTheBinDoesNotMatter has a link put in its place, as somebody does
// who wants to have something else deleted.
func TestThePathOfTheBinDoesNotMatter(t *testing.T) {
	outside, untouched := sentinel(t)
	p := newPlace(t)
	check(t, os.Rename(p.bin, p.bin+"-moved"))
	check(t, os.Symlink(outside, p.bin))
	check(t, os.Mkdir(filepath.Join(p.path, "v"), 0o755))
	check(t, p.Bin.Put(p.dir, "v"))
	p.run(t)
	until(t, "the bin is empty", p.isEmpty)
	untouched()
	left, err := os.ReadDir(p.bin + "-moved")
	if err != nil || len(left) != 0 {
		t.Errorf("left in the bin: %v %v", left, err)
	}
}

func TestEntries(t *testing.T) {
	long := strings.Repeat("n", 255)
	for _, row := range []struct{ name, original string }{
		{"v", "v"},
		{"-", "-"},
		{"new\nline", "new\nline"},
		{newWrapper(), ""},
		{long, long[:255-len(newWrapper())-1]},
	} {
		entry := bareName(row.name)
		if row.original == "" {
			row.original = row.name
		}
		if got := original(entry); got != row.original || isWrapper(entry) || len(entry) > 255 {
			t.Errorf("%q is %q, wrapper %v", entry, got, isWrapper(entry))
		}
	}
	for _, name := range []string{"v", "0000000000000000001-ABCDEFGHIJKLMNOPQRSTUVWXYZ", "." + strings.Repeat("a", 46), ".", "...", "lost+found"} {
		if isWrapper(name) || original(name) != name {
			t.Errorf("%q is taken for a wrapper", name)
		}
	}
	if entry := newWrapper(); !isWrapper(entry) {
		t.Errorf("%q is no wrapper", entry)
	}
}
