package watch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// heard collects the paths and subtrees of hints until the marker's, which is written
// last, comes too; or until everything is to be looked at.
func (o *owner) heard(t *testing.T) (paths, subtrees []string, everything bool) {
	t.Helper()
	write(t, filepath.Join(o.w.Root(), "marker"), "")
	o.until("marker", func(h Hint) bool { return h.Everything || slices.Contains(h.Paths, "marker") })
	o.converge()
	for _, h := range o.hints {
		everything = everything || h.Everything
		paths, subtrees = append(paths, h.Paths...), append(subtrees, h.Subtrees...)
	}
	slices.Sort(paths)
	slices.Sort(subtrees)
	paths = slices.DeleteFunc(paths, func(p string) bool { return p == "marker" })
	return slices.Compact(paths), slices.Compact(subtrees), everything
}

// announced is heard where nothing is so wrong that everything is to be looked at.
func (o *owner) announced(t *testing.T) (paths, subtrees []string) {
	t.Helper()
	paths, subtrees, everything := o.heard(t)
	if everything {
		t.Fatalf("everything is to be looked at; hints %s", o.last())
	}
	return paths, subtrees
}

func TestEvents(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(root string) error
		paths, subtrees []string
	}{
		"create":                  {func(r string) error { return os.WriteFile(r+"/new", nil, 0o644) }, []string{"new"}, nil},
		"write":                   {func(r string) error { return os.WriteFile(r+"/d/f", []byte("more"), 0o644) }, []string{"d/f"}, nil},
		"write, not closed":       {writeOpen, []string{"d/f"}, nil},
		"write through a mapping": {writeMapped, []string{"d/f"}, nil},
		"truncate":                {func(r string) error { return os.Truncate(r+"/d/f", 0) }, []string{"d/f"}, nil},
		"chmod":                   {func(r string) error { return os.Chmod(r+"/d/f", 0o600) }, []string{"d/f"}, nil},
		"chmod a directory":       {func(r string) error { return os.Chmod(r+"/d", 0o700) }, []string{"d"}, nil},
		"chmod the root":          {func(r string) error { return os.Chmod(r, 0o700) }, []string{"."}, nil},
		"chown":                   {func(r string) error { return os.Lchown(r+"/d/f", os.Getuid(), os.Getgid()) }, []string{"d/f"}, nil},
		"unlink":                  {func(r string) error { return os.Remove(r + "/d/f") }, []string{"d/f"}, nil},
		"rename":                  {func(r string) error { return os.Rename(r+"/d/f", r+"/g") }, []string{"d/f", "g"}, nil},
		"C21: rename save":        {renameSave, []string{".f.swp", "d/f"}, nil},
		"C21: link":               {func(r string) error { return os.Link(r+"/d/f", r+"/lnk") }, []string{"lnk"}, nil},
		"C30: symlink":            {func(r string) error { return os.Symlink(".", r+"/self") }, []string{"self"}, nil},
		"C19: fifo":               {func(r string) error { return unix.Mkfifo(r+"/p", 0o600) }, []string{"p"}, nil},
		"mkdir":                   {func(r string) error { return os.Mkdir(r+"/e", 0o755) }, nil, []string{"e"}},
		"mkdir, deep at once":     {func(r string) error { return os.MkdirAll(r+"/e/f/g/h", 0o755) }, nil, []string{"e"}},
		"rmdir":                   {func(r string) error { return os.Remove(r + "/empty") }, nil, []string{"empty"}},
		"C30: file to directory":  {fileToDirectory, []string{"d/f"}, []string{"d/f"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, dir := range []string{"d", "empty"} {
				if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(root, "d/f"), "1")
			o := start(t, New(), root)
			defer o.w.Stop()
			o.calm()
			if err := test.change(root); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.paths {
				o.until(want, func(h Hint) bool { return slices.Contains(h.Paths, want) || slices.Contains(h.Subtrees, want) })
			}
			for _, want := range test.subtrees {
				o.until(want, func(h Hint) bool { return slices.Contains(h.Subtrees, want) })
			}
			o.converge()
			if o.whole != 0 {
				t.Errorf("everything was looked at; hints %s", o.last())
			}
			if state := o.w.State(); state.Degraded {
				t.Errorf("%+v", state)
			}
		})
	}
}

func writeOpen(root string) error {
	f, err := os.OpenFile(root+"/d/f", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("2"); err != nil {
		return err
	}
	// Left to the end of the process: closing is another event.
	_, err = unix.Dup(int(f.Fd()))
	return err
}

func writeMapped(root string) error {
	f, err := os.OpenFile(root+"/d/f", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	memory[0] = '2'
	return unix.Munmap(memory)
}

func renameSave(root string) error {
	if err := os.WriteFile(root+"/.f.swp", []byte("3"), 0o644); err != nil {
		return err
	}
	return os.Rename(root+"/.f.swp", root+"/d/f")
}

func fileToDirectory(root string) error {
	if err := os.Remove(root + "/d/f"); err != nil {
		return err
	}
	return os.MkdirAll(root+"/d/f/g", 0o755)
}

func TestReadingWakesNobody(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	grow(t, root, 5)
	o := start(t, New(), root)
	defer o.w.Stop()
	o.calm()
	for round := 0; ; round++ {
		for range 100 {
			tree(root)
			if _, err := os.ReadFile(filepath.Join(root, "d1/f")); err != nil {
				t.Fatal(err)
			}
		}
		paths, subtrees := o.announced(t)
		if len(paths)+len(subtrees) == 0 {
			return
		}
		if round == 5 { // Some time the last event of the writes before has come.
			t.Fatalf("reading announced %q and %q", paths, subtrees)
		}
	}
}

// C26 and more: names are bytes.
func TestNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	names := []string{
		"-rf", "--upload-pack=x", "nl\nx", "tab\tx", "q\"u'o", "back\\slash", " lead", "trail ", "dot.", "*", "[a]",
		":(top)x", "m -> n", "#h", "!b", "~", "\r", "$(id)", "A", "a", "\xff\xfe", "...", "..a", "a...",
		string(slices.Repeat([]byte("n"), 255)),
	}
	o := start(t, New(), root)
	defer o.w.Stop()
	o.calm()
	for _, name := range names {
		write(t, filepath.Join(root, name), "x")
		if err := os.MkdirAll(filepath.Join(root, "-d", name, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	paths, _ := o.announced(t)
	for _, name := range names {
		if !slices.Contains(paths, name) {
			t.Errorf("%q is not announced", name)
		}
	}
	o.calm()
	for i, name := range names {
		write(t, filepath.Join(root, "-d", name, name, strconv.Itoa(i)), "x")
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	paths, _ = o.announced(t)
	for i, name := range names {
		if inner := filepath.Join("-d", name, name, strconv.Itoa(i)); !slices.Contains(paths, inner) || !slices.Contains(paths, name) {
			t.Errorf("%q or %q is not announced", inner, name)
		}
	}
}
