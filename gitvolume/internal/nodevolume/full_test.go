package nodevolume_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/gitvolume/internal/gittest"
)

// TestFullDisk is C43 (c): while the disk is full nothing is lost or harmed, and work goes
// on by itself when there is room.
func TestFullDisk(t *testing.T) {
	mountns.Require(t)
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1", "up": "1"})
	dir := newDir(t)
	check(t, os.MkdirAll(dir, 0o700))
	check(t, unix.Mount("none", dir, "tmpfs", 0, "size=8m,mode=700"))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	p := newProcess(t, dir)
	v := p.volume(wants(upstream.Dir)).publish()
	want := files{"a": "1", "up": "1"}
	for round := range 2 {
		name := fmt.Sprintf("small%d", round)
		v.write(name, "1")
		want[name] = "1"
		filler := filepath.Join(dir, "checkouts", "filler")
		fill(t, filler)
		put(t, upstream, "main", files{"up": fmt.Sprint(round + 2)})
		want["up"] = fmt.Sprint(round + 2)
		// The application's own write finds no room, or what is left of it.
		_ = os.WriteFile(filepath.Join(v.tree(), "big"), make([]byte, 64<<10), 0o644)
		check(t, os.RemoveAll(filepath.Join(v.tree(), "big")))
		within(t, 2*time.Minute, func() bool { return len(v.faults()) > 0 }, func() string { return "nothing tells of the full disk" })
		if round == 1 {
			// A stop that cannot commit has to be tried again.
			v.write("late", "")
			want["late"] = ""
			if err := v.Stop(t.Context(), time.Second); err == nil {
				t.Error("a stop says that all was committed to a full disk")
			}
		}
		check(t, os.Remove(filler))
		if round == 1 {
			v.stop()
			check(t, v.Publish(t.Context()))
		}
		v.TakeCredential()
		arrives(t, upstream, "main", want)
		v.soon()
	}
	v.has(want)
	v.stop()
	p.end()
	upstream.Git("fsck", "--strict")
}

// fill leaves no room at all on the disk of a file.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	check(t, err)
	defer file.Close()
	for size := 64 << 10; size > 0; {
		if _, err := file.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else {
			check(t, err)
		}
	}
}
