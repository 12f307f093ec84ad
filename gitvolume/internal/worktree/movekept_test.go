package worktree

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
)

// resume resumes with the application before a step.
func (i *interrupted) resume(step string, act func()) {
	i.t.Helper()
	mv, err := i.mover(i.store).begin(i.t.Context(), i.store.held)
	i.do(err)
	defer func() { mv.cursor.Close() }()
	mv.before = func(at, path string) {
		if at == step && path == i.path {
			act()
		}
	}
	i.result, err = mv.resume()
	i.do(err)
}

// contents are those of all files.
func (v *volume) contents() []string {
	v.t.Helper()
	var all []string
	for _, content := range v.onDisk() {
		all = append(all, content)
	}
	return all
}

// TestAWriteWhileAnEarlierOneIsPutBackAfterACrash keeps both.
func TestAWriteWhileAnEarlierOneIsPutBackAfterACrash(t *testing.T) {
	for _, kind := range []int{0, 1, 5} {
		kind := changeKinds()[kind]
		t.Run(kind.name, func(t *testing.T) {
			i := interrupt(t, kind, "put", "replaces")
			i.crash("look")
			i.resume("replace", func() {
				i.do(os.RemoveAll(i.at(i.path)))
				i.write(i.path, "later")
			})
			if got := string(must(os.ReadFile(i.at(i.path)))); got != "later" {
				t.Errorf("in its place is %q", got)
			}
			i.keptWhatWasWritten()
		})
	}
}

// TestAWriteThatEqualsALikeFileElsewhere has a crash, after which that file is taken for
// what the commit before had.
func TestAWriteThatEqualsALikeFileElsewhere(t *testing.T) {
	kind := change{from: upstream{"a/f": "1", "d/f": "mine"}, to: upstream{"a/f": "2", "d/f": "3"}, path: "a/f"}
	for _, act := range []string{"writes", "replaces"} {
		i := interrupt(t, kind, "put", act)
		i.crash("look")
		i.resume("", nil)
		i.holds(upstream{"a/f": "mine", "d/f": "3"})
		if !slices.Equal(i.result.Late, []string{"a/f"}) {
			t.Errorf("late %q", i.result.Late)
		}
	}
}

// TestTheNameOfWhatIsKeptIsTaken by an application that knows what it will be.
func TestTheNameOfWhatIsKeptIsTaken(t *testing.T) {
	i := interrupt(t, changeKinds()[0], "put", "writes")
	mv, err := i.mover(i.store).begin(t.Context(), newIntent(i.root, i.to))
	i.do(err)
	defer func() { mv.cursor.Close() }()
	taken := join(filepath.Dir(i.path), keptName(mv.intent.unfinished(ready, filepath.Base(i.path))))
	i.write(taken, "taken")
	mv.before = func(at, path string) {
		i.before(at, path)
		if at == "back" {
			i.do(os.WriteFile(i.at(i.path), []byte("later"), 0o600))
		}
	}
	i.result, err = mv.move()
	i.do(err)
	for _, content := range []string{"taken", "mine", "later"} {
		if !slices.Contains(i.contents(), content) {
			t.Errorf("%q is lost: %q", content, i.onDisk())
		}
	}
	if !slices.Contains(i.result.Late, taken+"-2") {
		t.Errorf("late %q", i.result.Late)
	}
	i.keptWhatWasWritten()
}

// unreadable is a source of which one blob cannot be read.
type unreadable struct {
	Source
	blob object.ID
}

func (f unreadable) Reader(blob object.ID) (io.ReadCloser, int64, error) {
	if blob == f.blob {
		return nil, 0, unix.EIO
	}
	return f.Source.Reader(blob)
}

// TestWhatWasStagedMovesBeforeTheMoveFails with its directory.
func TestWhatWasStagedMovesBeforeTheMoveFails(t *testing.T) {
	for _, swap := range []bool{false, true} {
		v := newVolume(t)
		v.start(upstream{"a/f": "1", "b": "1"})
		to := v.treeOf(upstream{"a/f": "2", "b": "bad"})
		store := &intents{}
		m := v.mover(store)
		m.Source = unreadable{v.repo, must(Hasher{}.Blob([]byte("bad")))}
		mv, err := m.begin(t.Context(), newIntent(v.root, to))
		v.do(err)
		mv.before = func(step, path string) {
			if step == "stage" && path == "b" {
				v.do(os.Rename(v.at("a"), v.at("moved")))
				if swap {
					v.do(os.Mkdir(v.at("a"), 0o755))
				}
			}
		}
		if _, err := mv.move(); !errors.Is(err, unix.EIO) {
			t.Fatalf("error %v", err)
		}
		mv.cursor.Close()
		if store.held.Token != "" || store.holds != v.root {
			t.Errorf("the intent is %+v", store)
		}
		v.noneUnfinished()
		if got := v.onDisk()["moved/f"]; got != "1" {
			t.Errorf("the directory holds %q", got)
		}
	}
}

// TestASparseFileInTheWay has a size that no commit's file has; to read it takes minutes.
func TestASparseFileInTheWay(t *testing.T) {
	for name, kind := range map[string]change{
		"of a new file":     {from: upstream{"g": ""}, to: upstream{"g": "", "f": "1"}, path: "f"},
		"of a changed file": {from: upstream{"f": "1"}, to: upstream{"f": "2"}, path: "f"},
		"of a directory":    {from: upstream{"d/f": "1", "d/g": "1"}, to: upstream{"d": "2"}, path: "d/f"},
	} {
		for _, remembered := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				v := newVolume(t)
				v.limit = 1 << 20
				v.start(kind.from)
				v.write(kind.path, "")
				v.do(os.Truncate(v.at(kind.path), 1<<40))
				if remembered {
					v.commit()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				moved, err := v.mover(&intents{}).Move(ctx, v.root, v.treeOf(kind.to))
				v.do(err)
				if len(moved.Conflicts) == 0 {
					t.Errorf("%+v", moved)
				}
			})
		}
	}
}

// TestAFileThatComesIntoADirectoryThatGoes by one who has it open, in the place of a file
// that goes with it.
func TestAFileThatComesIntoADirectoryThatGoes(t *testing.T) {
	i := interrupt(t, changeKinds()[6], "remove", "adds")
	dir := must(unix.Open(i.at(i.path), unix.O_RDONLY|unix.O_DIRECTORY, 0))
	defer unix.Close(dir)
	i.act = func(string) error {
		fd, err := unix.Openat(dir, "x.tmp", unix.O_WRONLY|unix.O_CREAT, 0o600)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte("mine"))
		return errors.Join(err, unix.Close(fd), unix.Renameat(dir, "x.tmp", dir, "x"))
	}
	i.run()
	i.holds(upstream{"d/f/x": "mine"})
	if !i.wrote || len(i.result.Late) == 0 {
		t.Errorf("late %q", i.result.Late)
	}
}

// TestALinkOfWhichTheNameIsTaken does not give away whose file that is.
func TestALinkOfWhichTheNameIsTaken(t *testing.T) {
	if !canGive(t) {
		t.Skip("needs to give files to other users")
	}
	v := newVolume(t)
	v.write("secret", "x")
	dir := openCursor(t, v.tree).Here()
	fd := must(openPath(dir.Fd(), "secret"))
	defer unix.Close(fd)
	before := v.shown("secret")
	if _, err := giveLink(dir, fd, attributes{owner: 1000, group: 1000}); !errors.Is(err, errVanished) {
		t.Errorf("error %v", err)
	}
	if after := v.shown("secret"); after != before {
		t.Errorf("it was %s and is %s", before, after)
	}
}
