package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

func TestParseFree(t *testing.T) {
	for text, want := range map[string]Free{
		"0": {}, "0%": {}, "0.00%": {}, "0Gi": {}, "0k": {}, "0%,0": {}, "5%,0": {}, "0%,1Gi": {}, "0Gi,5%": {}, "099.9%,1.5Ti": {Bytes: 3 << 39, Percent: 99.9}, "5%": {Percent: 5}, "0.5%": {Percent: 0.5}, "1Gi": {Bytes: 1 << 30}, "5%,1Gi": DefaultFree(), "100M,10%": {Bytes: 100e6, Percent: 10},
	} {
		free, err := ParseFree(text)
		if err != nil || free != want {
			t.Errorf("%q: %+v, %v", text, free, err)
		}
		if again, err := ParseFree(free.String()); err != nil || again != free {
			t.Errorf("%q is printed %q, which is %+v, %v", text, free, again, err)
		}
	}
	for _, text := range []string{"", "%", "5%%", "-1", "-5%", "100%", "NaN%", "0x5p1%", "1e1%", "5 %", "1Gi,2Gi", "5%,6%", "0%,0%", "0,0Gi", ",", "%,0", "1Gi,", "1e999999999", "0.5", "much"} {
		if free, err := ParseFree(text); err == nil || !strings.Contains(err.Error(), "5%,1Gi") {
			t.Errorf("%q: %+v, %v, want an error that says what is right", text, free, err)
		}
	}
}

func FuzzParseFree(f *testing.F) {
	f.Add("5%,1Gi")
	f.Add("0.1%")
	f.Fuzz(func(t *testing.T, text string) {
		free, err := ParseFree(text)
		if err != nil {
			return
		}
		if free.Bytes < 0 || free.Percent < 0 || free.Percent >= 100 {
			t.Fatalf("%q: %+v", text, free)
		}
		if again, err := ParseFree(free.String()); err != nil || again != free {
			t.Fatalf("%q is printed %q, which is %+v, %v", text, free, again, err)
		}
	})
}

func TestTheLessOfTwoIsKeptFree(t *testing.T) {
	const gib = 1 << 30
	for _, row := range []struct {
		free       Free
		size, want int64
	}{
		{DefaultFree(), 10 * gib, gib / 2},
		{DefaultFree(), 1000 * gib, gib},
		{Free{Percent: 10}, 1000 * gib, 100 * gib},
		{Free{Bytes: gib}, gib / 2, gib},
		{Free{}, gib, 0},
	} {
		if got := row.free.of(row.size); got != row.want {
			t.Errorf("%s of %d: %d, want %d", row.free, row.size, got, row.want)
		}
	}
}

func TestCheckFree(t *testing.T) {
	mountns.Require(t)
	f := newFixture(t)
	f.onDisk("tmpfs", "size=10m")
	for text, want := range map[string]error{"0": nil, "5%,1Gi": nil, "90%": nil, "9M": nil, "11M": ErrFull} {
		var err error
		f.store.settings.MinFree, err = ParseFree(text)
		f.must(err)
		if err := f.store.CheckFree(); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "--min-free "+f.store.settings.MinFree.String()) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

func TestSpace(t *testing.T) {
	mountns.Require(t)
	const size = 10 << 20
	f := newFixture(t)
	f.onDisk("tmpfs", "size=10m")
	before, err := f.store.Space()
	f.must(err)
	f.must(os.WriteFile(filepath.Join(f.dir, "filler"), make([]byte, 4<<20), 0o600))
	after, err := f.store.Space()
	f.must(err)
	if before.Bytes != size || after.Bytes != size || before.AvailableBytes > size || before.AvailableBytes-after.AvailableBytes != 4<<20 {
		t.Errorf("%+v before and %+v after 4 MiB of %d bytes were taken", before, after, size)
	}
}

// onDisk has the store on a file system of its own.
func (f *fixture) onDisk(kind, options string) {
	f.t.Helper()
	f.must(f.store.Close())
	f.must(unix.Mount("none", f.dir, kind, 0, options))
	f.t.Cleanup(func() { _ = f.store.Close(); _ = unix.Unmount(f.dir, unix.MNT_DETACH) })
	f.open()
}

func TestVolatile(t *testing.T) {
	mountns.Require(t)
	overlay := func(t *testing.T, memory bool) string {
		base := t.TempDir()
		if memory {
			must(t, unix.Mount("none", base, "tmpfs", 0, ""))
			t.Cleanup(func() { must(t, unix.Unmount(base, unix.MNT_DETACH)) })
		}
		// A comma and a blank in a path are escaped in the mount table.
		for _, name := range []string{"lower", "an upper", "work"} {
			must(t, exec.Command("mkdir", base+"/"+name).Run())
		}
		return "lowerdir=" + base + "/lower,upperdir=" + base + "/an upper,workdir=" + base + "/work"
	}
	for _, row := range []struct {
		name, kind string
		options    func(t *testing.T) string
		want       string
	}{
		{"the disk it is on", "", nil, ""},
		{"tmpfs", "tmpfs", func(*testing.T) string { return "" }, "on a tmpfs"},
		{"ramfs", "ramfs", func(*testing.T) string { return "" }, "on a ramfs"},
		{"an overlay on a disk", "overlay", func(t *testing.T) string { return overlay(t, false) }, ""},
		{"an overlay on a tmpfs", "overlay", func(t *testing.T) string { return overlay(t, true) }, "overlay that writes to a tmpfs"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFixture(t)
			if kind, err := fileSystem(f.dir); err != nil || inMemory(kind) != "" {
				t.Skipf("the tests' own directory is in memory: %v", err)
			}
			if row.kind != "" {
				f.onDisk(row.kind, row.options(t))
			}
			reason, err := f.store.Volatile()
			if err != nil || !strings.Contains(reason, row.want) || (reason == "") != (row.want == "") {
				t.Errorf("%q, %v, want %q", reason, err, row.want)
			}
		})
	}
}

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{`/a`: "/a", `/a\040b\054c`: "/a b,c", `/a\134`: `/a\`, `/a\04`: `/a\04`, `\999`: `\999`} {
		if got := unescape(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
