package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// checkout is one of the volume's repository.
func (v *volume) checkout() *Checkout {
	base := filepath.Dir(v.dir)
	v.dir = filepath.Join(base, "checkout")
	return &Checkout{Dir: v.dir, Note: filepath.Join(base, "note"), Source: v.repo}
}

func (v *volume) follow(c *Checkout, tree object.ID) []Skip {
	v.t.Helper()
	refused, err := c.Follow(v.t.Context(), tree, tree)
	v.do(err)
	if commit, err := c.Commit(); err != nil || commit != tree {
		v.t.Errorf("holds %s, error %v, want %s", commit, err, tree)
	}
	v.noneUnfinished()
	return refused
}

func TestCheckoutFollows(t *testing.T) {
	v := newVolume(t)
	defer unix.Umask(unix.Umask(0o077))
	c := v.checkout()
	if commit, err := c.Commit(); err != nil || !commit.IsZero() {
		t.Errorf("before the first: %s, %v", commit, err)
	}
	for _, files := range []upstream{
		{"f": "1", "x*": "1", "l@": "../out", "m%": "", "d/e/f": "1"},
		{"f": "2", "x": "1", "l@": "l", "m": "file", "d": "file"},
		{},
		{"f/f": "2", "x/x/x*": "1", "m%": ""},
		{"f/f": "3", "x/x/x*": "1", "m%": ""},
	} {
		v.follow(c, v.treeOf(files))
		v.holds(files)
		v.do(filepath.WalkDir(v.dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info := must(entry.Info())
			want := fs.FileMode(0o644)
			if info.IsDir() || info.Mode()&0o100 != 0 {
				want = 0o755
			}
			if info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm() != want {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return nil
		}))
	}
}

func TestCheckoutIsNotToBeChanged(t *testing.T) {
	v := newVolume(t)
	c := v.checkout()
	one, two := v.treeOf(upstream{"f": "1"}), v.treeOf(upstream{"f": "2"})
	v.follow(c, one)
	write(t, v.at("f"), "other")
	if _, err := c.Follow(t.Context(), two, two); !errors.Is(err, ErrChanged) {
		t.Errorf("a changed file: %v", err)
	}
	v.holds(upstream{"f": "other"})
	v.do(os.Remove(c.Note))
	if _, err := c.Follow(t.Context(), two, two); !errors.Is(err, ErrChanged) {
		t.Errorf("a tree that nobody knows: %v", err)
	}
	write(t, c.Note, "{")
	if _, err := c.Follow(t.Context(), two, two); !errors.Is(err, ErrChanged) {
		t.Errorf("a broken note: %v", err)
	}
}

// A small repository can stand for files without end.
func TestANewCheckoutStopsWhereThereIsNoRoom(t *testing.T) {
	v := newVolume(t)
	c := v.checkout()
	large, many, small := upstream{}, upstream{}, upstream{"f": "1"}
	for i := range 1000 {
		many[fmt.Sprintf("d%d/f%d", i%10, i)] = "1"
		if i < 5 {
			large[strconv.Itoa(i)] = strings.Repeat("0", askedEvery)
		}
	}
	full := errors.New("full")
	asked := 0
	c.Room = func() error {
		if asked++; asked < 3 {
			return nil
		}
		return full
	}
	for name, files := range map[string]upstream{"large": large, "many": many} {
		asked = 0
		tree := v.treeOf(files)
		if _, err := c.Follow(t.Context(), tree, tree); !errors.Is(err, full) {
			t.Errorf("%s: %v", name, err)
		}
		v.holds(upstream{})
		v.follow(c, v.treeOf(small))
		v.follow(c, tree) // What goes on does not ask.
		v.holds(files)
		v.do(errors.Join(os.RemoveAll(c.Dir), os.Remove(c.Note)))
	}
}

func TestCheckoutCarriesLabels(t *testing.T) {
	const label = "system_u:object_r:container_file_t:s0"
	v := newVolume(t)
	c := v.checkout()
	c.Label = label
	mkdirs(t, v.dir)
	if err := unix.Setxattr(v.dir, labelName, []byte("unlabeled"), 0); err != nil {
		t.Skipf("the file system, or the user, cannot set labels: %v", err)
	}
	v.follow(c, v.treeOf(upstream{"f": "1", "d/g*": "1", "l@": "nowhere", "m%": ""}))
	for _, path := range []string{"", "/f", "/d", "/d/g", "/l", "/m"} {
		got := make([]byte, 256)
		n, err := unix.Lgetxattr(v.dir+path, labelName, got)
		if err != nil || string(got[:n]) != label {
			t.Errorf("%q has the label %q, error %v", path, got[:max(n, 0)], err)
		}
	}
	// Where the root has none, nothing gets one.
	v2 := newVolume(t)
	c2 := v2.checkout()
	c2.Label = label
	v2.follow(c2, v2.treeOf(upstream{"f": "1"}))
	if n, err := unix.Lgetxattr(v2.at("f"), labelName, make([]byte, 256)); err == nil {
		t.Errorf("a label of %d bytes where there are none", n)
	}
}

// revision is a commit in which every file has its number.
func revision(n, files int) upstream {
	r := upstream{"turns/x": "1", "sub/same": "same"}
	for i := range files {
		r["f"+strconv.Itoa(i)] = strconv.Itoa(n)
	}
	r["sub/f"] = strconv.Itoa(n)
	if n%2 == 1 {
		delete(r, "turns/x")
		r["turns"] = "1"
		for i := files / 2; i < files; i++ {
			delete(r, "f"+strconv.Itoa(i))
		}
	}
	return r
}

// TestReadersOfACheckout is C49, the tree's part: files that both commits have are never
// missing and never torn, whatever becomes of their kinds.
func TestReadersOfACheckout(t *testing.T) {
	const files = 60
	v := newVolume(t)
	c := v.checkout()
	v.follow(c, v.treeOf(revision(0, files)))
	root, sub, held := inode(t, v.dir), inode(t, v.at("sub")), must(os.Open(v.at("f1")))
	defer held.Close()
	subHandle := must(unix.Open(v.at("sub"), unix.O_RDONLY|unix.O_DIRECTORY, 0))
	defer unix.Close(subHandle)

	var newest atomic.Int64
	done := make(chan struct{})
	var readers sync.WaitGroup
	read := func(path string) {
		for last := int64(0); ; {
			select {
			case <-done:
				return
			default:
			}
			if path == "turns" {
				if _, err := os.Lstat(v.at(path)); err != nil {
					t.Errorf("turns: %v", err)
					return
				}
				continue
			}
			content, err := os.ReadFile(v.at(path))
			n, bad := strconv.ParseInt(string(content), 10, 64)
			if err != nil || bad != nil || n < last || n > newest.Load() {
				t.Errorf("%s: read %q after %d, error %v", path, content, last, err)
				return
			}
			last = n
		}
	}
	for _, path := range []string{"f0", "f29", "sub/f", "turns"} {
		readers.Go(func() { read(path) })
	}
	for n := 1; n <= 6; n++ {
		newest.Store(int64(n))
		v.follow(c, v.treeOf(revision(n, files)))
	}
	close(done)
	readers.Wait()
	v.holds(revision(6, files))
	if inode(t, v.dir) != root || inode(t, v.at("sub")) != sub {
		t.Error("a directory that stays is another one")
	}
	content := make([]byte, 16)
	if n, err := held.Read(content); err != nil || string(content[:n]) != "0" {
		t.Errorf("an open file: %q, %v", content[:n], err)
	}
	if fd, err := unix.Openat(subHandle, "f", unix.O_RDONLY, 0); err != nil {
		t.Error(err)
	} else if n, err := unix.Read(fd, content); err != nil || string(content[:n]) != "6" {
		t.Errorf("by a directory that is held: %q, %v", content[:n], err)
	}
}

// TestCheckoutIsVerbatim is C34: no attribute of the tree changes a byte.
func TestCheckoutIsVerbatim(t *testing.T) {
	v := newVolume(t)
	files := upstream{
		".gitattributes": "* text=auto\n*.id ident\n*.lfs filter=lfs diff=lfs merge=lfs -text\n*.exp export-ignore\n*.u16 working-tree-encoding=UTF-16LE eol=lf\n",
		"crlf.txt":       "a\r\nb\r\n", "k.id": "$Id$", "x.lfs": "version https://git-lfs.github.com/spec/v1\n", "n.exp": "1", "w.u16": "abc\n",
		"\xff\xfe-not utf8": "1", "new\nline": "1", "-leading": "1", `back\slash`: "1",
	}
	maps.Copy(files, upstream{"sub/.gitattributes": "* -text\n", "sub/crlf.txt": "a\r\n"})
	v.start(files)
	v.holds(files)
	v.silent()
	v.commit()
	v.equalsGitRaw()
}

// equalsGitRaw fails unless what a scan of the tree without any memory would commit is
// what is committed.
func (v *volume) equalsGitRaw() {
	v.t.Helper()
	v.memory = nil
	before := v.root
	v.root = object.ID{}
	if v.commit(); v.root != before {
		v.t.Errorf("the tree is %s, want %s", v.root, before)
	}
}

// TestCheckoutGoesOnAfterACrash follows to a third commit when it was between two.
func TestCheckoutGoesOnAfterACrash(t *testing.T) {
	v := newVolume(t)
	c := v.checkout()
	one, two := v.treeOf(upstream{"a": "1", "b": "1", "c": "1"}), v.treeOf(upstream{"a": "2", "b": "2", "d/e": "2"})
	three := v.treeOf(upstream{"a": "3", "c": "3"})
	v.follow(c, one)
	for _, crash := range []string{"a", "b", "d", "c"} {
		v.crashing(c, one, two, crash)
		if commit, err := c.Commit(); err != nil || !commit.IsZero() {
			t.Errorf("between two commits it holds %s, error %v", commit, err)
		}
		v.follow(c, three)
		v.holds(upstream{"a": "3", "c": "3"})
		v.follow(c, one)
		v.holds(upstream{"a": "1", "b": "1", "c": "1"})
	}
}

// crashing moves a checkout until the path is put in place.
func (v *volume) crashing(c *Checkout, from, to object.ID, path string) {
	v.t.Helper()
	tree, err := Open(c.Dir)
	v.do(err)
	defer tree.Close()
	keeper := &noteKeeper{path: c.Note, note: note{Commit: from, Tree: from}, commit: to}
	m := &Mover{Tree: tree, Source: c.Source, Intents: keeper, Fresh: metadata.Plain()}
	mv, err := m.begin(v.t.Context(), newIntent(from, to))
	v.do(err)
	defer mv.cursor.Close()
	defer func() {
		if ended := recover(); ended != "crash" {
			panic(ended)
		}
	}()
	mv.before = func(step, at string) {
		if step == "look" && at == path {
			panic("crash")
		}
	}
	_, _ = mv.move()
}

func TestMakeARoot(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "tree")
	for range 2 { // The second time it is what a crash left.
		if err := Make(dir, WriteableRoot); err != nil {
			t.Fatal(err)
		}
	}
	if mode := must(os.Stat(dir)).Mode().Perm(); mode != WriteableRoot {
		t.Errorf("mode %o", mode)
	}
	write(t, filepath.Join(dir, "mine"), "mine")
	if err := Make(dir, ReadOnlyRoot); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a tree in use: %v", err)
	}
	if mode := must(os.Stat(dir)).Mode().Perm(); mode != WriteableRoot {
		t.Errorf("mode %o of a tree in use", mode)
	}
}
