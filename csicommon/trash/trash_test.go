package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/usage"
)

func TestPutAndRun(t *testing.T) {
	outside, untouched := sentinel(t)
	long := strings.Repeat("n", 255)
	for _, row := range []struct {
		name  string // Of the item.
		plant func(t *testing.T, path string)
	}{
		{"something-of-everything", func(t *testing.T, path string) { tree(t, path, outside) }},
		{long, func(t *testing.T, path string) { tree(t, path, outside) }},
		{"new\nline \xff*", func(t *testing.T, path string) { tree(t, path, outside) }},
		{"empty", func(t *testing.T, path string) { check(t, os.Mkdir(path, 0)) }},
		{"file", func(t *testing.T, path string) { write(t, path, 5000) }},
		{"link", func(t *testing.T, path string) { check(t, os.Symlink(outside, path)) }},
		{"deep", func(t *testing.T, path string) { chain(t, path, 5000) }},
		{"many", func(t *testing.T, path string) {
			check(t, os.Mkdir(path, 0o755))
			for i := range 5000 {
				write(t, filepath.Join(path, fmt.Sprint(i)), 0)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t)
			path := filepath.Join(p.path, row.name)
			began := time.Now().Add(-tick)
			row.plant(t, path)
			unix.Sync() // Blocks are counted below, and allocated late.
			want := used(t, path)
			check(t, p.Bin.Put(p.dir, row.name))
			if !missing(path) {
				t.Error("it is still there after Put")
			}
			if got := p.Bin.Pending(); got != 1 {
				t.Errorf("%d pending", got)
			}
			p.run(t)
			p.emptied(t)
			until(t, "it is told", func() bool { return len(p.all()) == 1 })
			got := p.all()[0]
			if got.Name != row.name || got.Bytes != want.Bytes || got.Inodes != want.Inodes {
				t.Errorf("removed %+v, want %+v", got, want)
			}
			// Since it was made, which was before Put.
			if longest := time.Since(began); got.Age < 0 || got.Age > longest {
				t.Errorf("age %s, want at most %s", got.Age, longest)
			}
			_, after, moved := strings.Cut(p.lines.String(), "msg=\"moved to the trash\" volume=")
			if !moved || strings.Count(after, "\n") != 2 || !strings.Contains(after, "msg=\"deleted from the trash\" volume=") {
				t.Errorf("logged %q", p.lines.String())
			}
			untouched()
		})
	}
}

// Whoever reads the log must not meet the end of an item before its beginning: Run has
// it only once it was told of, and on the disk.
func TestNothingIsDeletedBeforeItWasTold(t *testing.T) {
	p := newPlace(t)
	var early bool
	look := func() {
		early = early || len(p.Bin.due()) > 0 || p.Bin.Pending() != 1
	}
	p.Bin.sync = func(*os.File) error { look(); return nil }
	var told int
	p.Bin.log = slog.New(asked{p.lines.Logger().Handler(), func(message string) {
		if message == "moved to the trash" {
			told++
			look()
		}
	}})
	p.run(t)
	for i := range 3 {
		name := fmt.Sprint("item-", i)
		check(t, os.Mkdir(filepath.Join(p.path, name), 0o755))
		check(t, p.Bin.Put(p.dir, name))
		if told != i+1 {
			t.Fatalf("told %d times of %d", told, i+1)
		}
		p.emptied(t)
	}
	if early {
		t.Error("Run may have deleted an item that was not told of")
	}
}

// asked calls a function with each message before it is logged.
type asked struct {
	slog.Handler
	ask func(message string)
}

func (h asked) Handle(ctx context.Context, record slog.Record) error {
	h.ask(record.Message)
	return h.Handler.Handle(ctx, record)
}

// used measures path, or the file it is.
func used(t *testing.T, path string) usage.Usage {
	t.Helper()
	var stat unix.Stat_t
	check(t, unix.Lstat(path, &stat))
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return usage.Usage{Bytes: stat.Blocks * 512, Inodes: 1}
	}
	dir, err := os.Open(path)
	check(t, err)
	defer dir.Close()
	got, err := usage.Walk(t.Context(), dir)
	check(t, err)
	return got
}

func TestPutRefuses(t *testing.T) {
	mountns.Require(t)
	p := newPlace(t)
	check(t, os.Mkdir(filepath.Join(p.path, "mounted"), 0o755))
	check(t, unix.Mount("none", filepath.Join(p.path, "mounted"), "tmpfs", 0, ""))
	defer unix.Unmount(filepath.Join(p.path, "mounted"), unix.MNT_DETACH)
	other, err := os.Open(filepath.Join(p.path, "mounted"))
	check(t, err)
	defer other.Close()
	check(t, unix.Mkdirat(int(other.Fd()), "elsewhere", 0o755))
	for _, row := range []struct {
		name string
		dir  *os.File
		want error
	}{
		{"missing", p.dir, fs.ErrNotExist},
		{"mounted", p.dir, unix.EBUSY},
		{"elsewhere", other, unix.EXDEV},
		{"", p.dir, fs.ErrInvalid},
		{".", p.dir, fs.ErrInvalid},
		{"..", p.dir, fs.ErrInvalid},
		{"../etc", p.dir, fs.ErrInvalid},
		{"a\x00b", p.dir, fs.ErrInvalid},
	} {
		t.Run(fmt.Sprintf("%q", row.name), func(t *testing.T) {
			if err := p.Bin.Put(row.dir, row.name); !errors.Is(err, row.want) {
				t.Errorf("error %v, want %v", err, row.want)
			}
			if left, err := os.ReadDir(p.bin); err != nil || len(left) != 0 || p.Bin.Pending() != 0 {
				t.Errorf("in the bin: %v %v, %d pending", left, err, p.Bin.Pending())
			}
		})
	}
}

func TestOneNameAgainAndAgain(t *testing.T) {
	p := newPlace(t)
	p.run(t)
	for range 50 {
		check(t, os.MkdirAll(filepath.Join(p.path, "v", "d"), 0o755))
		check(t, p.Bin.Put(p.dir, "v"))
	}
	p.emptied(t)
	until(t, "all are told", func() bool { return len(p.all()) == 50 })
}

func TestPutOfAHandleOpenedForThePathOnly(t *testing.T) {
	p := newPlace(t)
	fd, err := unix.Open(p.path, unix.O_PATH|unix.O_DIRECTORY, 0)
	check(t, err)
	dir := os.NewFile(uintptr(fd), p.path)
	defer dir.Close()
	check(t, os.Mkdir(filepath.Join(p.path, "v"), 0o755))
	check(t, p.Bin.Put(dir, "v"))
	p.run(t)
	p.emptied(t)
}

func TestRestartGoesOn(t *testing.T) {
	p := newPlace(t)
	outside, untouched := sentinel(t)
	tree(t, filepath.Join(p.path, "v"), outside)
	check(t, p.Bin.Put(p.dir, "v"))
	// What a process killed in Put leaves, and what people leave.
	check(t, os.Mkdir(filepath.Join(p.bin, ".0000000000000000001-ABCDEFGHIJKLMNOPQRSTUVWXYZ"), 0o700))
	write(t, filepath.Join(p.bin, "by-hand"), 1)
	check(t, os.Symlink(outside, filepath.Join(p.bin, "link-by-hand")))
	tree(t, filepath.Join(p.bin, "tree-by-hand"), outside)

	p.reopen(t)
	if got := p.Bin.Pending(); got != 5 {
		t.Errorf("%d pending", got)
	}
	p.run(t)
	p.emptied(t)
	until(t, "four are told", func() bool { return len(p.all()) == 4 })
	var v Removed
	for _, removed := range p.all() {
		if removed.Name == "v" {
			v = removed
		}
	}
	if v.Inodes != treeInodes {
		t.Errorf("removed %+v", v)
	}
	untouched()
}

func TestRunStopsInTheMiddleAndLeavesTheRest(t *testing.T) {
	p := newPlace(t)
	check(t, os.Mkdir(filepath.Join(p.path, "v"), 0o755))
	const files = 20_000
	for i := range files {
		write(t, filepath.Join(p.path, "v", fmt.Sprint(i)), 0)
	}
	check(t, p.Bin.Put(p.dir, "v"))
	at, err := filepath.Glob(p.bin + "/.*/v")
	if err != nil || len(at) != 1 {
		t.Fatal(at, err)
	}
	first := filepath.Join(at[0], "0")
	stop := p.run(t)
	until(t, "it has begun", func() bool { return missing(first) })
	start := time.Now()
	stop()
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s to stop", took)
	}
	p.run(t)
	p.emptied(t)
	until(t, "it is told", func() bool { return len(p.all()) == 1 })
	if got := p.all()[0].Inodes; got != files+1 {
		t.Errorf("removed %d inodes in two runs", got)
	}
}

func TestAnEndedContextDeletesNothing(t *testing.T) {
	p := newPlace(t)
	check(t, os.Mkdir(filepath.Join(p.path, "v"), 0o755))
	check(t, p.Bin.Put(p.dir, "v"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.Bin.Run(ctx)
	if p.Bin.Pending() != 1 {
		t.Error("it was deleted")
	}
}
