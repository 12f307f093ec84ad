package usage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/descent"
)

func TestWalkAgreesWithDu(t *testing.T) {
	for _, row := range []struct {
		name  string
		plant func(t *testing.T, top string)
	}{
		{"empty directory", func(*testing.T, string) {}},
		{"sparse file of a terabyte", func(t *testing.T, top string) {
			write(t, filepath.Join(top, "sparse"), 5000)
			check(t, os.Truncate(filepath.Join(top, "sparse"), 1<<40))
		}},
		{"hard links in and out", func(t *testing.T, top string) {
			write(t, filepath.Join(top, "one"), 100_000)
			check(t, os.Mkdir(filepath.Join(top, "d"), 0o755))
			for i := range 5 {
				check(t, os.Link(filepath.Join(top, "one"), filepath.Join(top, "d", strconv.Itoa(i))))
			}
			outside := filepath.Join(t.TempDir(), "outside")
			write(t, outside, 50_000)
			check(t, os.Link(outside, filepath.Join(top, "in")))
			check(t, os.Link(outside, filepath.Join(top, "in2")))
		}},
		{"links to outside and loops", func(t *testing.T, top string) {
			for name, target := range map[string]string{
				"etc": "/etc", "root": "/", "self": "self", "dot": ".", "up": "../..", "gone": "nowhere",
				"long": strings.Repeat("l", 3000), // In a block of its own.
			} {
				check(t, os.Symlink(target, filepath.Join(top, name)))
			}
		}},
		{"fifo, socket and device", special},
		{"names of 255 bytes, newlines and no UTF-8", func(t *testing.T, top string) {
			for _, name := range []string{strings.Repeat("n", 255), "new\nline", "\xff\xfe", " ", "-rf", "*", "\x01"} {
				check(t, os.Mkdir(filepath.Join(top, name), 0o755))
				write(t, filepath.Join(top, name, name), 1)
			}
		}},
		{"mode 000", func(t *testing.T, top string) {
			if os.Geteuid() != 0 {
				t.Skip("only root reads a directory of mode 000")
			}
			check(t, os.Mkdir(filepath.Join(top, "d"), 0o755))
			write(t, filepath.Join(top, "d", "f"), 10_000)
			check(t, os.Chmod(filepath.Join(top, "d", "f"), 0))
			check(t, os.Chmod(filepath.Join(top, "d"), 0))
		}},
		{"5,000 levels", func(t *testing.T, top string) { chain(t, top, 5000) }},
		{"10,000 files in one directory", func(t *testing.T, top string) {
			for i := range 10_000 {
				write(t, filepath.Join(top, strconv.Itoa(i)), i%3)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			top := t.TempDir()
			row.plant(t, top)
			unix.Sync() // Delayed allocation would let the two see different numbers of blocks.
			got, want := measured(t, top), du(t, top)
			if got != want {
				t.Errorf("measured %+v, du and find say %+v", got, want)
			}
		})
	}
}

// special makes what is neither file nor directory nor link.
func special(t *testing.T, top string) {
	check(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0o600))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(top, "s"), Net: "unix"})
	check(t, err)
	listener.SetUnlinkOnClose(false)
	check(t, listener.Close())
	// In a user namespace nobody makes devices.
	if err := unix.Mknod(filepath.Join(top, "null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil && !errors.Is(err, unix.EPERM) {
		t.Fatal(err)
	}
}

func TestWalkLeavesOutMounts(t *testing.T) {
	mountns.Require(t)
	top, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(elsewhere, "big"), 1<<20)
	write(t, filepath.Join(top, "own"), 10_000)
	want := measured(t, top)
	check(t, os.Mkdir(filepath.Join(top, "bind"), 0o755))
	write(t, filepath.Join(top, "file"), 0)
	for source, target := range map[string]string{elsewhere: "bind", filepath.Join(elsewhere, "big"): "file"} {
		at := filepath.Join(top, target)
		check(t, unix.Mount(source, at, "", unix.MS_BIND, ""))
		t.Cleanup(func() { check(t, unix.Unmount(at, unix.MNT_DETACH)) })
	}
	if got := measured(t, top); got != want {
		t.Errorf("measured %+v, want %+v as without the mounts", got, want)
	}
}

func TestWalkWhileEverythingChanges(t *testing.T) {
	top := t.TempDir()
	for i := range 20 {
		check(t, os.MkdirAll(filepath.Join(top, "stays", strconv.Itoa(i)), 0o755))
	}
	stays := measured(t, filepath.Join(top, "stays")).Inodes

	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for worker := range 2 {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				churn(t, top, fmt.Sprintf("%d-%d", worker, i))
			}
		})
	}
	for range 200 {
		got, err := walked(t, top)
		if err != nil {
			t.Errorf("a walk while the tree changes: %v", err)
			break
		}
		// 3 for each worker's tree, which a rename may have counted twice.
		if got.Inodes <= stays || got.Inodes > stays+1+2*2*4 {
			t.Errorf("measured %d inodes, %d of them stay", got.Inodes, stays)
		}
	}
	cancel()
	group.Wait()
}

// churn makes a small tree, moves it, swaps a directory for a link, removes it.
func churn(t *testing.T, top, name string) {
	d := filepath.Join(top, name)
	err := errors.Join(
		os.MkdirAll(filepath.Join(d, "x"), 0o755),
		os.WriteFile(filepath.Join(d, "x", "f"), nil, 0o644),
		os.Rename(filepath.Join(d, "x"), filepath.Join(d, "y")),
		os.Symlink("/usr", filepath.Join(d, "x")),
		os.RemoveAll(d),
	)
	if err != nil {
		t.Error(err)
	}
}

func TestWalkEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	top := t.TempDir()
	write(t, filepath.Join(top, "f"), 1)
	dir, err := os.Open(top)
	check(t, err)
	defer dir.Close()
	if got, err := Walk(ctx, dir); !errors.Is(err, context.Canceled) || got != (Usage{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCountForgetsLinksItHasMet(t *testing.T) {
	top := t.TempDir()
	for i := range 100 {
		name := filepath.Join(top, strconv.Itoa(i))
		write(t, name, 1)
		check(t, os.Link(name, name+"-again"))
	}
	links := map[inode]uint32{}
	counted := measuredWith(t, top, &count{step: func(context.Context) error { return nil }, links: links})
	if counted.Inodes != 100 || len(links) != 0 {
		t.Errorf("%d inodes, %d links still held", counted.Inodes, len(links))
	}
}

// TestLinksInBoundedMemory: the numbers are the walk's, the files are not there,
// since 100,000 of them take a minute to make.
func TestLinksInBoundedMemory(t *testing.T) {
	const inodes, links = linked + 50_000, 3
	count := &count{links: map[inode]uint32{}}
	for range links {
		for i := range inodes {
			count.add(descent.Stat{Device: 1, Inode: uint64(i), Links: links, Bytes: 512})
			if len(count.links) > linked {
				t.Fatalf("%d inodes are remembered", len(count.links))
			}
		}
	}
	if got := count.sum(); got != (Usage{Bytes: inodes * 512, Inodes: inodes}) {
		t.Errorf("measured %+v, want %d inodes of 512 bytes", got, inodes)
	}
}

func TestWalkGoesDownNoFurtherThanItsBound(t *testing.T) {
	for _, row := range []struct {
		levels  int
		want    int64
		atLeast bool
	}{
		{deepest, deepest + 1, false},
		{deepest + 5, deepest + 2, true}, // The last one is counted, but not looked into.
	} {
		top := t.TempDir()
		chain(t, top, row.levels)
		if got := measured(t, top); got.Inodes != row.want || got.AtLeast != row.atLeast {
			t.Errorf("%d levels: %+v, want %d inodes", row.levels, got, row.want)
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	const files = 100_000
	top := b.TempDir()
	for i := range files {
		d := filepath.Join(top, strconv.Itoa(i/100))
		if i%100 == 0 {
			check(b, os.Mkdir(d, 0o755))
		}
		write(b, filepath.Join(d, strconv.Itoa(i)), 0)
	}
	dir, err := os.Open(top)
	check(b, err)
	defer dir.Close()
	b.Run("walk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got, err := Walk(b.Context(), dir); err != nil || got.Inodes != files+files/100+1 {
				b.Fatal(got, err)
			}
		}
	})
	b.Run("du", func(b *testing.B) {
		for b.Loop() {
			run(b, "du", "-s", top)
		}
	})
}
