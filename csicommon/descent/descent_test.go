package descent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// visits records what a descent meets; meet may act on the tree.
type visits struct {
	entries, leaves, unreadable []string
	meet                        func(dir *Directory, name string)
}

func (v *visits) Entry(_ context.Context, dir *Directory, name string) (bool, error) {
	v.entries = append(v.entries, dir.Path(name))
	if v.meet != nil {
		v.meet(dir, name)
	}
	stat, err := dir.Stat(name)
	if Vanished(err) {
		return false, nil
	}
	return stat.Directory, err
}

func (v *visits) Leave(dir *Directory, name string) error {
	v.leaves = append(v.leaves, dir.Path(name))
	return nil
}

func (v *visits) Unreadable(path string, err error) error {
	if !errors.Is(err, ErrMount) {
		return err
	}
	v.unreadable = append(v.unreadable, path)
	return nil
}

func TestWalkMeetsEveryEntryOnce(t *testing.T) {
	top := t.TempDir()
	want := []string{}
	for _, name := range []string{"a/b/c", "new\nline/\xff\xfe", strings.Repeat("n", 255) + "/x", "-rf/*", "empty"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for ; name != "."; name = filepath.Dir(name) {
			want = append(want, name)
		}
	}
	// More names than are read at once.
	for i := range 2000 {
		name := "a/b/file" + strconv.Itoa(i)
		write(t, filepath.Join(top, name))
		want = append(want, name)
	}
	symlink(t, "/etc", filepath.Join(top, "a/etc"))
	symlink(t, "loop", filepath.Join(top, "a/loop"))
	want = append(want, "a/etc", "a/loop")

	v := &visits{}
	if err := walkAt(t, top, v); err != nil {
		t.Fatal(err)
	}
	equal(t, "entries", v.entries, want)
	directories := slices.DeleteFunc(slices.Clone(want), func(name string) bool {
		return strings.HasPrefix(name, "a/b/file") || name == "a/etc" || name == "a/loop"
	})
	equal(t, "leaves", v.leaves, directories)
}

func TestWalkGoesDeeperThanItHoldsHandles(t *testing.T) {
	const depth = 1000
	top := t.TempDir()
	chain(t, top, depth, func(fd int) { mkdirat(t, fd, "a"); mkdirat(t, fd, "z") })
	before := handles(t)
	most := 0
	v := &visits{}
	v.meet = func(*Directory, string) {
		if len(v.entries)%100 == 0 {
			most = max(most, handles(t))
		}
	}
	if err := walkAt(t, top, v); err != nil {
		t.Fatal(err)
	}
	// d, a and z on each level.
	if want := 3 * depth; len(v.entries) != want || len(v.leaves) != want {
		t.Errorf("%d entries and %d leaves of %d directories", len(v.entries), len(v.leaves), want)
	}
	if most-before > window+8 {
		t.Errorf("%d handles open at once, the window is %d", most-before, window)
	}
	if after := handles(t); after > before {
		t.Errorf("%d handles open before, %d after", before, after)
	}
}

func TestWalkDoesNotFollowADirectoryThatWasMovedElsewhere(t *testing.T) {
	top, elsewhere := t.TempDir(), t.TempDir()
	chain(t, top, 300, func(int) {})
	write(t, filepath.Join(elsewhere, "secret"))
	at := filepath.Join(top, strings.Repeat("d/", 50))
	v := &visits{}
	v.meet = func(*Directory, string) {
		if len(v.entries) == 300 {
			// Its parent is closed by now.
			if err := os.Rename(at, filepath.Join(elsewhere, "moved")); err != nil {
				t.Error(err)
			}
		}
	}
	before := handles(t)
	if err := walkAt(t, top, v); !errors.Is(err, ErrMoved) {
		t.Errorf("error %v, want ErrMoved", err)
	}
	for _, name := range v.entries {
		if strings.HasSuffix(name, "secret") {
			t.Errorf("visited %q", name)
		}
	}
	if after := handles(t); after > before {
		t.Errorf("%d handles open before, %d after", before, after)
	}
}

func TestWalkPassesOverADirectorySwappedForALink(t *testing.T) {
	top, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(elsewhere, "secret"))
	mkdir(t, filepath.Join(top, "d"))
	v := &swapper{top: top, target: elsewhere}
	if err := walkAt(t, top, v); err != nil {
		t.Fatal(err)
	}
	equal(t, "entries", v.entries, []string{"d"})
}

// swapper has a link entered that was a directory when it was looked at.
type swapper struct {
	visits
	top, target string
}

func (s *swapper) Entry(_ context.Context, dir *Directory, name string) (bool, error) {
	s.entries = append(s.entries, dir.Path(name))
	path := filepath.Join(s.top, name)
	return true, errors.Join(os.Remove(path), os.Symlink(s.target, path))
}

func TestWalkEndsWithItsContext(t *testing.T) {
	top := t.TempDir()
	for i := range 100 {
		write(t, filepath.Join(top, strconv.Itoa(i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	v := &visits{meet: func(*Directory, string) { cancel() }}
	root := open(t, top)
	if err := Walk(ctx, root, v); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if len(v.entries) != 1 {
		t.Errorf("visited %d entries", len(v.entries))
	}
}

func TestMountsAreNotEntered(t *testing.T) {
	mountns.Require(t)
	top, elsewhere := t.TempDir(), t.TempDir()
	mkdir(t, filepath.Join(elsewhere, "inside"))
	write(t, filepath.Join(elsewhere, "file"))
	for _, name := range []string{"bind", "tmpfs", "plain"} {
		mkdir(t, filepath.Join(top, name))
	}
	write(t, filepath.Join(top, "file"))
	mount(t, elsewhere, filepath.Join(top, "bind"), "", unix.MS_BIND)
	mount(t, "none", filepath.Join(top, "tmpfs"), "tmpfs", 0)
	mount(t, filepath.Join(elsewhere, "file"), filepath.Join(top, "file"), "", unix.MS_BIND)

	v := &visits{}
	if err := walkAt(t, top, v); err != nil {
		t.Fatal(err)
	}
	equal(t, "entries", v.entries, []string{"bind", "tmpfs", "plain", "file"})
	equal(t, "unreadable", v.unreadable, []string{"bind", "tmpfs"})

	root := open(t, top)
	defer root.Close()
	for name, want := range map[string]bool{"bind": true, "tmpfs": true, "file": true, "plain": false} {
		stat, err := root.Stat(name)
		if err != nil || stat.Mount != want {
			t.Errorf("Stat(%q): mount %v, error %v", name, stat.Mount, err)
		}
	}
}

func TestEnterWithoutOpenat2(t *testing.T) {
	mountns.Require(t)
	top, elsewhere := t.TempDir(), t.TempDir()
	for _, name := range []string{"plain", "bind"} {
		mkdir(t, filepath.Join(top, name))
	}
	write(t, filepath.Join(top, "file"))
	if err := unix.Mkfifo(filepath.Join(top, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	symlink(t, elsewhere, filepath.Join(top, "link"))
	mount(t, elsewhere, filepath.Join(top, "bind"), "", unix.MS_BIND)
	root := open(t, top)
	defer root.Close()

	for _, row := range []struct {
		name string
		want func(error) bool
	}{
		{"plain", func(err error) bool { return err == nil }},
		{"bind", func(err error) bool { return errors.Is(err, ErrMount) }},
		{"link", Vanished},
		{"file", Vanished},
		{"fifo", Vanished},
		{"missing", Vanished},
	} {
		t.Run(row.name, func(t *testing.T) {
			fd, err := root.openChecked(row.name)
			if !row.want(err) {
				t.Errorf("openChecked: %v", err)
			}
			if err == nil {
				_ = unix.Close(fd)
			}
			child, err := root.Enter(row.name)
			if !row.want(err) {
				t.Errorf("Enter: %v", err)
			}
			if err == nil {
				_ = child.Close()
			}
		})
	}
}

func TestPathOfADeepDirectoryIsCut(t *testing.T) {
	root := &Directory{}
	at := root
	for range 100_000 {
		at = &Directory{name: "directory", parent: at}
	}
	path := at.Path("last")
	if len(path) > longest+10 || !strings.HasPrefix(path, ".../directory/") || !strings.HasSuffix(path, "/directory/last") {
		t.Errorf("%d bytes: %.40q", len(path), path)
	}
	if got := root.Path(""); got != "." {
		t.Errorf("path of the top: %q", got)
	}
}

// What a listing says of its names keeps all but directories from being opened.
func TestMayBeDirectory(t *testing.T) {
	path := t.TempDir()
	mkdir(t, filepath.Join(path, "d"))
	write(t, filepath.Join(path, "f"))
	symlink(t, "d", filepath.Join(path, "l"))
	dir := open(t, path)
	defer dir.Close()
	for range 3 {
		name, err := dir.Next()
		if err != nil {
			t.Fatal(err)
		}
		if may := dir.MayBeDirectory(); may != (name == "d") {
			t.Errorf("%s: %t", name, may)
		}
	}
}
