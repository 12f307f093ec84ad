package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
)

// change is one kind of difference between two commits, at a path.
type change struct {
	name     string
	from, to upstream
	path     string
}

func changeKinds() []change {
	return []change{
		{"file", upstream{"d/f": "1"}, upstream{"d/f": "2"}, "d/f"},
		{"link", upstream{"d/f@": "1"}, upstream{"d/f@": "2"}, "d/f"},
		{"removed", upstream{"d/f": "1", "d/g": ""}, upstream{"d/g": ""}, "d/f"},
		{"made", upstream{"d/g": ""}, upstream{"d/f": "1", "d/g": ""}, "d/f"},
		{"made with its directory", upstream{"g": ""}, upstream{"d/f": "1", "g": ""}, "d"},
		{"to a directory", upstream{"d/f": "1"}, upstream{"d/f/x": "1"}, "d/f"},
		{"to a file", upstream{"d/f/x": "1"}, upstream{"d/f": "1"}, "d/f"},
	}
}

// acts are what an application may do at a path at any moment.
func acts() map[string]func(path string) error {
	return map[string]func(path string) error{
		"writes": func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"replaces": func(path string) error {
			if err := os.WriteFile(path+".tmp", []byte("mine"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".tmp", path)
		},
		"adds": func(path string) error { return os.WriteFile(path+"/added", []byte("mine"), 0o600) },
		"swaps the parent": func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.Rename(dir, dir+".moved"), os.Mkdir(dir, 0o755))
		},
		"leads out": func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.Rename(dir, dir+".moved"), os.Symlink("../outside", dir))
		},
	}
}

// isOuter tells that an act is about the directory the path is in.
func isOuter(act string) bool { return act == "swaps the parent" || act == "leads out" }

// interrupted is a move with the application between its steps.
type interrupted struct {
	*volume
	change
	act    func(path string) error
	outer  bool // See isOuter.
	step   string
	steps  []string
	wrote  bool
	store  *intents
	to     object.ID
	result *Moved
}

func interrupt(t *testing.T, kind change, step, name string) *interrupted {
	i := &interrupted{volume: newVolume(t), change: kind, act: acts()[name], step: step, store: &intents{}}
	i.outer = isOuter(name)
	mkdirs(t, filepath.Join(filepath.Dir(i.dir), "outside"))
	i.start(kind.from)
	i.to = i.treeOf(kind.to)
	return i
}

// before has the application act once, before the step. What goes through a handle that
// was open when the file was replaced is another matter.
func (i *interrupted) before(at, path string) {
	if path != i.path {
		return
	}
	i.steps = append(i.steps, at)
	if at == i.step && i.act != nil {
		i.wrote = i.act(i.at(i.path)) == nil && !i.outer
		i.act = nil
	}
}

// run moves, and resumes if that has to be.
func (i *interrupted) run() {
	i.t.Helper()
	mv, err := i.mover(i.store).begin(i.t.Context(), newIntent(i.root, i.to))
	i.do(err)
	defer func() { mv.cursor.Close() }()
	mv.before = i.before
	i.result, err = mv.move()
	if err != nil {
		i.result, err = i.mover(i.store).Resume(i.t.Context(), i.store.held)
	}
	i.do(err)
}

// keptWhatWasWritten fails if the application's write is lost, or one out of the tree.
func (i *interrupted) keptWhatWasWritten() {
	i.t.Helper()
	if len(i.result.Conflicts) > 0 || i.store.held.Token != "" {
		i.t.Errorf("conflicts %q, the intent is %v", i.result.Conflicts, i.store.held)
	}
	i.noneUnfinished()
	found := false
	for _, content := range i.onDisk() {
		found = found || content == "mine"
	}
	if i.wrote && !found {
		i.t.Errorf("what the application wrote is lost: %q, late %q", i.onDisk(), i.result.Late)
	}
	if entries := must(os.ReadDir(filepath.Join(filepath.Dir(i.dir), "outside"))); len(entries) > 0 {
		i.t.Errorf("outside of the tree is %v", entries)
	}
	i.root, i.memory = i.to, i.result.Memory
	i.commit()
}

// TestMoveLosesNoWrite is the application between every two steps.
func TestMoveLosesNoWrite(t *testing.T) {
	onTmpfs(t)
	for _, kind := range changeKinds() {
		for _, step := range []string{"stage", "put", "look", "remove", "back"} {
			for name := range acts() {
				if step == "remove" && name == "writes" || isOuter(name) && !strings.Contains(kind.path, "/") {
					continue // Through an open handle; the root.
				}
				t.Run(kind.name+"/"+step+"/"+name, func(t *testing.T) {
					i := interrupt(t, kind, step, name)
					i.run()
					i.keptWhatWasWritten()
				})
			}
		}
	}
}

// TestACrashRightAfterTheApplicationsWrite has what the application wrote come out, and
// the process end before it can look at that.
func TestACrashRightAfterTheApplicationsWrite(t *testing.T) {
	onTmpfs(t)
	for _, kind := range changeKinds() {
		for _, name := range []string{"writes", "replaces", "adds"} {
			for _, crash := range []string{"put", "look", "back"} {
				t.Run(kind.name+"/"+name+"/"+crash, func(t *testing.T) {
					i := interrupt(t, kind, "put", name)
					i.crash(crash)
					var err error
					i.result, err = i.mover(i.store).Resume(t.Context(), i.store.held)
					i.do(err)
					i.keptWhatWasWritten()
				})
			}
		}
	}
}

// crash moves until that step.
func (i *interrupted) crash(step string) {
	i.t.Helper()
	mv, err := i.mover(i.store).begin(i.t.Context(), newIntent(i.root, i.to))
	i.do(err)
	defer func() {
		mv.cursor.Close()
		if ended := recover(); ended != nil && ended != "crash" {
			panic(ended)
		}
	}()
	mv.before = func(at, path string) {
		i.before(at, path)
		if at == step && path == i.path {
			panic("crash")
		}
	}
	_, err = mv.move()
	i.do(err)
}

// TestTwoWritesInOneMoment has the application write again while its first write is put
// back: both are kept, the later one in its place.
func TestTwoWritesInOneMoment(t *testing.T) {
	for _, kind := range []change{changeKinds()[0], changeKinds()[2]} {
		i := interrupt(t, kind, "put", "writes")
		mv, err := i.mover(i.store).begin(t.Context(), newIntent(i.root, i.to))
		i.do(err)
		mv.before = func(at, path string) {
			i.before(at, path)
			if at == "back" {
				i.do(os.WriteFile(i.at(i.path), []byte("later"), 0o600))
			}
		}
		i.result, err = mv.move()
		mv.cursor.Close()
		i.do(err)
		if got := string(must(os.ReadFile(i.at(i.path)))); got != "later" {
			t.Errorf("%s: in its place is %q", kind.name, got)
		}
		if len(i.result.Late) != 2 {
			t.Errorf("%s: late %q", kind.name, i.result.Late)
		}
		i.keptWhatWasWritten()
	}
}

// TestMoveFollowsAChangeOfMode has the application change a file's mode while its
// successor is made.
func TestMoveFollowsAChangeOfMode(t *testing.T) {
	for _, step := range []string{"put", "look"} {
		i := interrupt(t, changeKinds()[0], step, "writes")
		i.act = func(path string) error {
			return errors.Join(os.Chmod(path, 0o600), unix.Setxattr(path, "user.a", []byte("b"), 0))
		}
		i.run()
		if step == "put" && !strings.HasPrefix(i.shown(i.path), "600 ") {
			t.Errorf("the mode is %s", i.shown(i.path))
		}
		i.holds(i.change.to)
	}
}

// TestMoveAmongHostileRenames moves while the application swaps directories for links
// that lead out, moves them about and plants what blocks.
func TestMoveAmongHostileRenames(t *testing.T) {
	onTmpfs(t)
	v := newVolume(t)
	outside := filepath.Join(filepath.Dir(v.dir), "outside")
	for _, path := range []string{"a/f", "a/g", "e/f", "e/g", "f/x"} {
		write(t, filepath.Join(outside, "a", path), "canary")
	}
	canary := func() string {
		all := ""
		v.do(filepath.WalkDir(outside, func(path string, entry os.DirEntry, err error) error {
			info := must(entry.Info())
			all += path + info.Mode().String() + info.ModTime().String()
			return err
		}))
		return all
	}
	before := canary()
	commits := []object.ID{
		v.treeOf(upstream{"a/e/f": "1", "a/f": "1", "b/e/f": "1"}),
		v.treeOf(upstream{"a/e/f": "2", "a/f/x": "2", "b/e/g": "2"}),
		v.treeOf(upstream{"a/e": "3", "a/f": "3", "c/e/f": "3"}),
	}
	stop := make(chan struct{})
	var application sync.WaitGroup
	application.Go(func() { v.swap(outside, stop) })
	deadline := time.Now().Add(2 * time.Second)
	moves, put, resumed := 0, 0, 0
	for from := (object.ID{}); time.Now().Before(deadline); moves++ {
		to := commits[moves%len(commits)]
		if moves%len(commits) == 0 {
			for _, entry := range must(os.ReadDir(v.dir)) {
				_ = os.RemoveAll(v.at(entry.Name()))
			}
			from = object.ID{}
		}
		store := &intents{}
		m := v.mover(store)
		moved, err := m.Move(t.Context(), from, to)
		for tries := 0; err != nil && store.held.Token != "" && tries < 100; tries++ {
			resumed++
			moved, err = m.Resume(t.Context(), store.held)
		}
		if err == nil {
			put += len(moved.Written)
		}
		from = to
	}
	close(stop)
	application.Wait()
	if after := canary(); after != before {
		t.Errorf("outside the tree was\n%s\nis\n%s", before, after)
	}
	if put == 0 {
		t.Error("nothing was ever put in place")
	}
	t.Logf("%d moves, %d resumed, %d paths put in place", moves, resumed, put)
}

// swap is an application that swaps directories for links to another one, until it is
// told to stop. It does not go through those links itself.
func (v *volume) swap(outside string, stop <-chan struct{}) {
	in := func(path string, do func(dir int, name string)) {
		parent, name := split(path)
		dir, err := unix.Open(v.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return
		}
		defer unix.Close(dir)
		if parent != "." {
			if dir, err = unix.Openat(dir, parent, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
				return
			}
			defer unix.Close(dir)
		}
		do(dir, name)
	}
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		in([]string{"a", "b", "a/e", "a/f", "c"}[n%5], func(dir int, name string) {
			switch n % 7 {
			case 0, 1, 2:
				_ = unix.Renameat(dir, name, dir, "moved")
				_ = unix.Symlinkat(outside+"/a", dir, name)
			case 3, 4, 5:
				_ = unix.Unlinkat(dir, name, 0)
				_ = unix.Renameat(dir, "moved", dir, name)
			default:
				_ = unix.Mkfifoat(dir, name, 0o600)
			}
		})
		time.Sleep(20 * time.Microsecond) // Else it never lets a move come to its end.
	}
}

// TestADirectoryThatIsWrittenIntoIsPutBack has the application write through a handle of
// a directory that makes way for a file.
func TestADirectoryThatIsWrittenIntoIsPutBack(t *testing.T) {
	i := interrupt(t, changeKinds()[6], "remove", "adds")
	dir := must(unix.Open(i.at(i.path), unix.O_RDONLY|unix.O_DIRECTORY, 0))
	defer unix.Close(dir)
	i.act = func(string) error {
		fd, err := unix.Openat(dir, "added", unix.O_WRONLY|unix.O_CREAT, 0o600)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte("mine"))
		return errors.Join(err, unix.Close(fd))
	}
	i.run()
	if !i.wrote || len(i.result.Late) == 0 {
		t.Errorf("late %q", i.result.Late)
	}
	i.holds(upstream{"d/f/added": "mine"})
	i.keptWhatWasWritten()
}
