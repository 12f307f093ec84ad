package history

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk says the same each time, so that a repeated Event is counted up.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=1m,nr_inodes=60"); err != nil {
		t.Skipf("mounting takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(disk, "repository")
	if err := Create(dir); err != nil {
		t.Fatal(err)
	}
	r := openRepository(t, dir)
	if _, err := r.Blob(must(io.ReadAll(noise(2 << 20)))); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		for name, do := range map[string]func() error{
			"a pack": r.Flush, "a large blob": func() error { return failure(r.BlobFrom(noise(streamAt), streamAt)) },
		} {
			first, second := do(), do()
			if !errors.Is(first, unix.ENOSPC) || first.Error() != second.Error() {
				t.Errorf("%s without %s: %v, and then %v", name, what, first, second)
			}
		}
	}
	check("space")
	// Without inodes no file can be made at all.
	for err := error(nil); err == nil; {
		var file *os.File
		if file, err = os.CreateTemp(disk, "*"); err == nil {
			err = file.Close()
		}
	}
	check("inodes")
	left := must(filepath.Glob(filepath.Join(r.packDir(), "*")))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
