package trash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/inodeflags"
	"liken.sh/csicommon/csitest/logtest"
	"liken.sh/csicommon/csitest/mountns"
)

func TestImmutableFilesAreLeftLoggedOnceAndTriedAgain(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"v/kept/f", "v/gone/f", "v/shut/gone/f", "v/shut/f"} {
		check(t, os.MkdirAll(filepath.Join(p.path, filepath.Dir(name)), 0o755))
		write(t, filepath.Join(p.path, name), 10)
	}
	check(t, os.Mkdir(filepath.Join(p.path, "w"), 0o755))
	check(t, p.Bin.Put(p.dir, "v"))
	check(t, p.Bin.Put(p.dir, "w"))
	at, err := filepath.Glob(p.bin + "/.*/v")
	check(t, err)
	inodeflags.Fix(t, filepath.Join(at[0], "kept/f"), inodeflags.Immutable)
	inodeflags.Fix(t, filepath.Join(at[0], "shut"), inodeflags.Immutable)

	synctest.Test(t, func(t *testing.T) {
		p.reopen(t) // Its channel must belong to the bubble for the time in it to pass.
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Bin.Run(ctx) }()
		synctest.Wait()
		for name, want := range map[string]bool{"kept/f": false, "gone": true, "shut/gone/f": true, "shut/gone": false, "shut/f": false} {
			if got := missing(filepath.Join(at[0], name)); got != want {
				t.Errorf("%s: deleted %v", name, got)
			}
		}
		if got := p.Bin.Pending(); got != 1 {
			t.Errorf("%d pending: the other item must be gone", got)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		// One each for kept/f, shut/gone, shut/f and shut, one for the other item.
		if got := strings.Count(p.lines.String(), "level=WARN"); got != 4 {
			t.Errorf("%d warnings in a day: %s", got, p.lines.String())
		}
		check(t, inodeflags.Set(filepath.Join(at[0], "kept/f"), 0))
		check(t, inodeflags.Set(filepath.Join(at[0], "shut"), 0))
		time.Sleep(latest + time.Second)
		synctest.Wait()
		if p.Bin.Pending() != 0 {
			t.Errorf("not deleted when it could be: %s", p.lines.String())
		}
		cancel()
		<-done
	})
	if all := p.all(); len(all) != 2 || all[1].Name != "v" || all[1].Inodes != 9 {
		t.Errorf("removed %+v", all)
	}
}

func TestRetriesBecomeRare(t *testing.T) {
	it := &item{entry: "w"}
	var lines logtest.Log
	var delays []time.Duration
	for range 10 {
		it.failed(lines.Logger(), &failures{})
		delays = append(delays, it.delay)
	}
	if delays[0] != soonest || delays[1] != 2*soonest || delays[9] != latest {
		t.Errorf("delays %v", delays)
	}
}

func TestManyFailuresMakeFewLines(t *testing.T) {
	it := &item{entry: "w"}
	var lines logtest.Log
	for range 3 {
		var failures failures
		for i := range 10_000 {
			failures.add(fmt.Errorf("delete %d: %w", i, unix.EPERM))
		}
		it.failed(lines.Logger(), &failures)
	}
	text := lines.String()
	if got := strings.Count(text, "\n"); got != told || !strings.Contains(text, "remaining=10000") {
		t.Errorf("%d lines: %.300s", got, text)
	}
}

func TestMountsAreLeft(t *testing.T) {
	mountns.Require(t)
	outside, untouched := sentinel(t)
	p := newPlace(t)
	tree(t, filepath.Join(p.path, "v"), outside)
	for _, name := range []string{"v/a/bind", "v/tmpfs"} {
		check(t, os.Mkdir(filepath.Join(p.path, name), 0o755))
	}
	write(t, filepath.Join(p.path, "v/file"), 0)
	check(t, p.Bin.Put(p.dir, "v"))
	at, err := filepath.Glob(p.bin + "/.*/v")
	check(t, err)
	names := []string{"a/bind", "tmpfs", "file"}
	check(t, unix.Mount(outside, filepath.Join(at[0], "a/bind"), "", unix.MS_BIND, ""))
	check(t, unix.Mount("none", filepath.Join(at[0], "tmpfs"), "tmpfs", 0, ""))
	check(t, unix.Mount(filepath.Join(outside, "0/d/f"), filepath.Join(at[0], "file"), "", unix.MS_BIND, ""))
	unmount := func() {
		for _, name := range names {
			_ = unix.Unmount(filepath.Join(at[0], name), unix.MNT_DETACH)
		}
	}
	t.Cleanup(unmount)
	tree(t, filepath.Join(p.path, "w"), outside)
	check(t, p.Bin.Put(p.dir, "w"))

	synctest.Test(t, func(t *testing.T) {
		p.reopen(t) // Its channel must belong to the bubble for the time in it to pass.
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Bin.Run(ctx) }()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		untouched()
		if got := p.Bin.Pending(); got != 1 {
			t.Errorf("%d pending", got)
		}
		left, err := os.ReadDir(at[0])
		if err != nil || len(left) != 3 {
			t.Errorf("left %v %v, want no more than is needed for the mounts", left, err)
		}
		text := p.lines.String()
		if got := strings.Count(text, "level=WARN"); got != len(names) {
			t.Errorf("%d warnings: %s", got, text)
		}
		for _, name := range names {
			if !strings.Contains(text, `v/`+name+`\": is a mount`) {
				t.Errorf("%s is not named: %s", name, text)
			}
		}
		unmount()
		time.Sleep(latest + time.Second)
		synctest.Wait()
		if p.Bin.Pending() != 0 {
			t.Errorf("not deleted after the unmount: %s", p.lines.String())
		}
		untouched()
		cancel()
		<-done
	})
}
