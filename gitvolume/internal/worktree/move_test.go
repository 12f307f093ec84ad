package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// intents keeps an intent in memory.
type intents struct {
	held   Intent
	stored int
	holds  object.ID
}

func (i *intents) Store(intent Intent) error { i.held = intent; i.stored++; return nil }

func (i *intents) Done(intent Intent, _ bool) error {
	i.held, i.holds = Intent{}, intent.To
	return nil
}

func (i *intents) Abandon(intent Intent) error { i.held, i.holds = Intent{}, intent.From; return nil }

// upstream is what a commit of somebody else holds: paths to content. A path that ends
// in a "@" is a link, one in "*" an executable file, one in "%" a submodule.
type upstream map[string]string

// treeOf makes a tree of that.
func (v *volume) treeOf(files upstream) object.ID {
	v.t.Helper()
	var changes []history.Change
	for path, content := range files {
		blob, err := v.repo.Blob([]byte(content))
		v.do(err)
		change := history.Change{Path: strings.TrimRight(path, "@*%"), Mode: object.Regular, Blob: blob}
		switch {
		case strings.HasSuffix(path, "@"):
			change.Mode = object.Symlink
		case strings.HasSuffix(path, "*"):
			change.Mode = object.Executable
		case strings.HasSuffix(path, "%"):
			change.Mode = object.Submodule
		}
		changes = append(changes, change)
	}
	tree, err := v.repo.Edit(object.ID{}, changes)
	v.do(err)
	v.do(v.repo.Flush())
	return tree
}

func (v *volume) mover(store Intents) *Mover {
	return &Mover{Tree: v.tree, Source: v.repo, Memory: v.memory, Intents: store, Fresh: metadata.Plain()}
}

// move moves the tree, which has to succeed, and adopts what comes out.
func (v *volume) move(to object.ID) *Moved {
	v.t.Helper()
	store := &intents{}
	moved, err := v.mover(store).Move(v.t.Context(), v.root, to)
	v.do(err)
	if len(moved.Conflicts) == 0 {
		v.root, v.memory = to, moved.Memory
	}
	if store.held.Token != "" || store.holds != v.root && len(moved.Conflicts) == 0 {
		v.t.Error("the intent is still stored, or it was not said that the move is done")
	}
	v.noneUnfinished()
	return moved
}

// start is a tree that has what a commit has.
func (v *volume) start(files upstream) {
	v.t.Helper()
	if moved := v.move(v.treeOf(files)); len(moved.Conflicts)+len(moved.Late)+len(moved.Refused) > 0 {
		v.t.Fatalf("a fresh tree: %+v", moved)
	}
}

// noneUnfinished fails if the tree has an unfinished file.
func (v *volume) noneUnfinished() {
	v.t.Helper()
	for path := range v.onDisk() {
		if strings.Contains(path, ownPrefix) && !strings.Contains(path, keptName("")) {
			v.t.Errorf("left over: %q", path)
		}
	}
}

// onDisk is what the tree holds, in the manner of upstream; directories end in "/".
func (v *volume) onDisk() map[string]string {
	v.t.Helper()
	found := map[string]string{}
	v.do(filepath.WalkDir(v.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == v.dir {
			return err
		}
		name := strings.TrimPrefix(path, v.dir+"/")
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case info.IsDir():
			found[name+"/"] = ""
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			found[name+"@"] = target
			return err
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if info.Mode()&0o100 != 0 {
				name += "*"
			}
			found[name] = string(content)
			return err
		default:
			found[name+"?"] = ""
		}
		return nil
	}))
	return found
}

// holds fails unless the tree has exactly these files, and the directories of those.
func (v *volume) holds(files upstream) {
	v.t.Helper()
	want := map[string]string{}
	for path, content := range files {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			want[dir+"/"] = ""
		}
		if module, is := strings.CutSuffix(path, "%"); is {
			want[module+"/"] = ""
			continue
		}
		want[path] = content
	}
	if got := v.onDisk(); !maps.Equal(got, want) {
		v.t.Errorf("on disk:\n%q\nwant:\n%q", got, want)
	}
}

// silent fails if a scan finds anything to commit or to report.
func (v *volume) silent() {
	v.t.Helper()
	result := v.scan(v.request())
	if len(result.Changes) > 0 || len(result.Found) > 0 || len(result.Skipped) > 0 {
		v.t.Errorf("a scan after the move: changes %+v, found %q, skipped %v", result.Changes, result.Found, result.Skipped)
	}
}

// TestMoveChangesKinds is C30, upstream's direction, and each kind to each other one.
func TestMoveChangesKinds(t *testing.T) {
	kinds := map[string]upstream{
		"nothing":     {},
		"file":        {"t": "1"},
		"other file":  {"t": "2"},
		"executable":  {"t*": "1"},
		"link":        {"t@": "nowhere"},
		"other link":  {"t@": "."},
		"directory":   {"t/a": "1", "t/b/c": "2", "t/l@": "../../x"},
		"other":       {"t/a/b": "1", "t/b": "2", "t/l@": "y"},
		"submodule":   {"t%": "commit"},
		"in a module": {"t/m%": "commit", "t/m2/x": "1"},
	}
	onTmpfs(t)
	v := newVolume(t)
	with := func(files upstream) upstream {
		files = maps.Clone(files)
		if files == nil {
			files = upstream{}
		}
		files["stays/x"] = "same"
		return files
	}
	v.start(with(nil))
	stays := inode(t, v.at("stays"))
	for from, before := range kinds {
		for to, after := range kinds {
			for _, files := range []upstream{before, after} {
				moved := v.move(v.treeOf(with(files)))
				if len(moved.Conflicts)+len(moved.Late)+len(moved.Refused) > 0 {
					t.Fatalf("%s to %s: %+v", from, to, moved)
				}
				v.holds(with(files))
				v.silent()
				if t.Failed() {
					t.Fatalf("%s to %s", from, to)
				}
			}
		}
	}
	if inode(t, v.at("stays")) != stays {
		t.Error("a directory that stays is another one")
	}
}

func TestMoveTouchesOnlyWhatDiffers(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"same": "1", "changes": "1", "d/same": "1", "d/changes": "1", "goes": "1", "e/goes": "1"})
	same := must(os.Stat(v.at("same")))
	d := inode(t, v.at("d"))
	write(t, v.at("untracked"), "mine")
	write(t, v.at("e/mine"), "mine")
	moved := v.move(v.treeOf(upstream{"same": "1", "changes": "2", "d/same": "1", "d/changes": "2", "new/x": "1"}))
	v.holds(upstream{
		"same": "1", "changes": "2", "d/same": "1", "d/changes": "2", "new/x": "1",
		"untracked": "mine", "e/mine": "mine",
	})
	after := must(os.Stat(v.at("same")))
	if !os.SameFile(same, after) || !after.ModTime().Equal(same.ModTime()) || inode(t, v.at("d")) != d {
		t.Error("what does not differ was touched")
	}
	if want := []string{"changes", "d/changes", "new", "new/x"}; !slices.Equal(moved.Written, want) {
		t.Errorf("written %q, want %q", moved.Written, want)
	}
	result := v.scan(v.request())
	v.wantsChanges(result, "e/mine", "untracked")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestMoveMeetsTheApplication has what the application did on the way of what upstream
// did.
func TestMoveMeetsTheApplication(t *testing.T) {
	for _, row := range []struct {
		name           string
		from, to       upstream
		app            func(v *volume)
		conflicts      []string
		changes        []string // Of a scan after a move that went through.
		leavesAsItWere bool
	}{
		{"wrote what upstream changes", upstream{"f": "1"}, upstream{"f": "2"},
			func(v *volume) { v.write("f", "3") }, []string{"f"}, nil, true},
		{"wrote what upstream removes", upstream{"f": "1"}, upstream{},
			func(v *volume) { v.write("f", "3") }, []string{"f"}, nil, true},
		{"removed what upstream changes", upstream{"f": "1", "g": ""}, upstream{"f": "2"},
			func(v *volume) { v.do(os.Remove(v.at("f"))) }, []string{"f"}, nil, true},
		{"removed a directory in which upstream changes one", upstream{"d/f": "1", "d/g": "1"}, upstream{"d/f": "2", "d/n": "1"},
			func(v *volume) { v.do(os.RemoveAll(v.at("d"))) }, []string{"d/f"}, nil, true},
		{"removed a directory in which upstream makes one", upstream{"d/f": "1"}, upstream{"d/f": "1", "d/n": "1"},
			func(v *volume) { v.do(os.RemoveAll(v.at("d"))) }, nil, []string{"-d/f"}, false},
		{"made the same", upstream{"f": "1"}, upstream{"f": "2", "n": "x"},
			func(v *volume) { v.write("f", "2"); v.write("n", "x") }, nil, nil, false},
		{"removed the same", upstream{"f": "1", "d/g": "1"}, upstream{},
			func(v *volume) { v.do(os.Remove(v.at("f"))); v.do(os.RemoveAll(v.at("d"))) }, nil, nil, false},
		{"an untracked file is in the way", upstream{}, upstream{"n": "1"},
			func(v *volume) { v.write("n", "mine") }, []string{"n"}, nil, true},
		{"an untracked file is in the way of a directory", upstream{}, upstream{"n/x": "1"},
			func(v *volume) { v.write("n", "mine") }, []string{"n"}, nil, true},
		{"an ignored file is in the way", upstream{".gitignore": "*.o"}, upstream{".gitignore": "*.o", "n.o": "1"},
			func(v *volume) { v.write("n.o", "mine") }, []string{"n.o"}, nil, true},
		{"an untracked directory is in the way", upstream{}, upstream{"n": "1"},
			func(v *volume) { v.write("n/mine", "mine") }, []string{"n"}, nil, true},
		{"an empty directory is in the way", upstream{}, upstream{"n": "1"},
			func(v *volume) { mkdirs(v.t, v.at("n")) }, []string{"n"}, nil, true},
		{"an untracked file is in a directory that becomes a file", upstream{"d/x": "1"}, upstream{"d": "1"},
			func(v *volume) { v.write("d/mine", "mine") }, []string{"d"}, nil, true},
		{"an untracked file is in a directory that is removed", upstream{"d/x": "1", "d/e/y": "1"}, upstream{},
			func(v *volume) { v.write("d/mine", "mine") }, nil, []string{"d/mine"}, false},
		{"a file of its own is in a new directory", upstream{}, upstream{"d/x": "1"},
			func(v *volume) { v.write("d/mine", "mine") }, nil, []string{"d/mine"}, false},
		{"a link took a directory's place", upstream{"d/x": "1"}, upstream{"d/x": "2"},
			func(v *volume) { v.do(os.Rename(v.at("d"), v.at("e"))); symlinkTo(v.t, "e", v.at("d")) }, []string{"d"}, nil, true},
		{"a FIFO took a file's place", upstream{"f": "1"}, upstream{"f": "2"},
			func(v *volume) { v.do(os.Remove(v.at("f"))); v.do(unix.Mkfifo(v.at("f"), 0o600)) }, []string{"f"}, nil, true},
		{"the executable bit is the application's", upstream{"f": "1"}, upstream{"f": "2"},
			func(v *volume) { v.do(os.Chmod(v.at("f"), 0o755)) }, []string{"f"}, nil, true},
		{"a directory stays that the application emptied", upstream{"d/x": "1", "d/y": "1"}, upstream{"d/x": "1"},
			func(v *volume) { v.do(os.Remove(v.at("d/x"))) }, nil, []string{"-d/x"}, false},
		{"wrote elsewhere", upstream{"f": "1", "g": "1"}, upstream{"f": "2", "g": "1"},
			func(v *volume) { v.write("g", "3") }, nil, []string{"g"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := newVolume(t)
			v.start(row.from)
			row.app(v)
			before := v.onDisk()
			moved := v.move(v.treeOf(row.to))
			if !slices.Equal(moved.Conflicts, row.conflicts) || len(moved.Late) > 0 {
				t.Fatalf("conflicts %q, late %q", moved.Conflicts, moved.Late)
			}
			if row.leavesAsItWere {
				if after := v.onDisk(); !maps.Equal(before, after) {
					t.Errorf("after a conflict:\n%q\nbefore:\n%q", after, before)
				}
				return
			}
			v.wantsChanges(v.scan(v.request()), row.changes...)
		})
	}
}

// TestMoveRefusesNames is C28, upstream's direction.
func TestMoveRefusesNames(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"ok": "1"})
	mkdirs(t, v.at(".git"))
	write(t, v.at(".git/x"), "mine")
	blob := strings.TrimSpace(v.feed("evil", "hash-object", "-w", "--stdin"))
	var lines []string
	for _, name := range []string{".GIT", ".git", "git~1", ".g\u200cit", ".git ", "ok", strings.Repeat("n", 256)} {
		lines = append(lines, fmt.Sprintf("100644 blob %s\t%s", blob, name))
	}
	lines = append(lines, fmt.Sprintf("120000 blob %s\t.gitmodules", blob))
	empty := strings.TrimSpace(v.feed("", "hash-object", "-w", "--stdin"))
	lines = append(lines, fmt.Sprintf("120000 blob %s\tempty", empty))
	sub := strings.TrimSpace(v.feed(fmt.Sprintf("100644 blob %s\tx\x00", blob), "mktree", "-z"))
	lines = append(lines, fmt.Sprintf("040000 tree %s\t.Git", sub))
	to, err := object.Parse(strings.TrimSpace(v.feed(strings.Join(lines, "\x00")+"\x00", "mktree", "-z")))
	v.do(err)
	moved := v.move(to)
	var refused []string
	for _, skip := range moved.Refused {
		refused = append(refused, skip.Path)
	}
	want := []string{".GIT", ".Git/x", ".git", ".git ", ".gitmodules", ".g\u200cit", "empty", "git~1", strings.Repeat("n", 256)}
	slices.Sort(want)
	slices.Sort(refused)
	if !slices.Equal(refused, want) {
		t.Errorf("refused %q\nwant %q", refused, want)
	}
	v.holds(upstream{"ok": "evil", ".git/x": "mine"})
	// Nothing that upstream cannot have here is taken for deleted.
	if result := v.scan(v.request()); len(result.Changes) > 0 {
		t.Errorf("changes %q", changed(result))
	}
	moved = v.move(v.treeOf(upstream{"ok": "1"}))
	v.holds(upstream{"ok": "1", ".git/x": "mine"})
	if len(moved.Refused)+len(moved.Conflicts) > 0 {
		t.Errorf("back: %+v", moved)
	}
}

func TestMoveRefusesTheWholeOfATreeThatLeadsOut(t *testing.T) {
	for _, name := range []string{"..", "."} {
		v := newVolume(t)
		blob := must(v.repo.Blob([]byte("evil")))
		v.do(v.repo.Flush())
		inner := "100644 x\x00" + string(blob[:])
		sub := must(object.Parse(strings.TrimSpace(v.feed(inner, "hash-object", "-t", "tree", "-w", "--stdin", "--literally"))))
		outer := "40000 " + name + "\x00" + string(sub[:])
		to := must(object.Parse(strings.TrimSpace(v.feed(outer, "hash-object", "-t", "tree", "-w", "--stdin", "--literally"))))
		if _, err := v.mover(&intents{}).Move(t.Context(), object.ID{}, to); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
		v.holds(upstream{})
	}
}

// feed runs git with something on its input.
func (v *volume) feed(input string, args ...string) string {
	v.t.Helper()
	command := exec.Command("git", args...)
	command.Dir, command.Env, command.Stdin = v.dir, v.git, strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		v.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestACancelledMoveLeavesTheTreeAsItWas has the time run out while the new is written.
func TestACancelledMoveLeavesTheTreeAsItWas(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"a": "1", "b": "1"})
	store := &intents{}
	ctx, cancel := context.WithCancel(t.Context())
	mv, err := v.mover(store).begin(ctx, newIntent(v.root, v.treeOf(upstream{"a": "2", "b": "2", "d/e/f": "2"})))
	v.do(err)
	defer func() { mv.cursor.Close() }()
	mv.before = func(step, path string) {
		if step == "stage" && path == "d" {
			cancel()
		}
	}
	if _, err := mv.move(); !errors.Is(err, context.Canceled) || store.held.Token != "" || store.holds != v.root {
		t.Errorf("error %v, the intent is %+v", err, store)
	}
	v.holds(upstream{"a": "1", "b": "1"})
	v.silent()
}

// TestMoveWithoutMemory reads what differs, and remembers it.
func TestMoveWithoutMemory(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"a": "1", "b": "1", "d/l@": "1", "gone/x": "1"})
	memory := v.memory
	v.memory = nil
	to := v.treeOf(upstream{"a": "2", "b": "1", "d/l@": "2"})
	moved := v.move(to)
	if len(moved.Conflicts)+len(moved.Late) > 0 {
		t.Fatalf("%+v", moved)
	}
	v.holds(upstream{"a": "2", "b": "1", "d/l@": "2"})
	// One that is of another commit than said does no harm: what it says is compared.
	v.memory = memory
	v.move(v.treeOf(upstream{"a": "3", "b": "1", "d/l@": "2"}))
	v.holds(upstream{"a": "3", "b": "1", "d/l@": "2"})
}

// TestTheNextScanReadsNothing has a move remember what it wrote.
func TestTheNextScanReadsNothing(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"a": "1", "d/b": "1"})
	v.move(v.treeOf(upstream{"a": "2", "d/b": "2", "e/f/c*": "2"}))
	for _, path := range []string{"a", "d/b", "e/f/c"} {
		e := v.memory.Entry(path)
		var stat unix.Stat_t
		v.do(unix.Lstat(v.at(path), &stat))
		if e.Racy || e.Stat.Inode != stat.Ino || e.Stat.Changed != stat.Ctim.Nano() || e.Stat.Modified != stat.Mtim.Nano() {
			t.Errorf("%q is remembered as %+v, and is %+v", path, e, stat)
		}
	}
	// A write of the same size right after is seen all the same.
	v.write("a", "3")
	v.wantsChanges(v.scan(v.request()), "a")
}
