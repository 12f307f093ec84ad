package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// crashingIn makes the test binary move the tree in that directory, and nothing else:
// it is started again under strace, which kills it.
const crashingIn = "LIKEN_TEST_CRASHING_IN"

// crash moves or resumes, as a driver does that is started again and again.
func crash(base string) {
	// strace counts the calls of each thread by itself.
	runtime.LockOSThread()
	late, err := moveOn(base)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if err := json.NewEncoder(os.Stdout).Encode(late); err != nil {
		os.Exit(4)
	}
	os.Exit(0)
}

func moveOn(base string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(base, "to"))
	if err != nil {
		return nil, err
	}
	to, err := object.Parse(string(text))
	if err != nil {
		return nil, err
	}
	repo, err := history.Open(filepath.Join(base, "store"))
	if err != nil {
		return nil, err
	}
	tree, err := Open(filepath.Join(base, "tree"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(base, "note")
	n, err := readNote(path)
	if err != nil {
		return nil, err
	}
	m := &Mover{Tree: tree, Source: repo, Intents: &noteKeeper{path: path, note: n, commit: to}, Fresh: metadata.Plain()}
	if n.Next != nil {
		moved, err := m.Resume(context.Background(), Intent{From: n.Tree, To: n.Next.Tree, Token: n.Next.Token})
		if err != nil {
			return nil, err
		}
		return moved.Late, nil
	}
	moved, err := m.Move(context.Background(), n.Tree, to)
	if err != nil {
		return nil, err
	}
	if len(moved.Conflicts) > 0 {
		return nil, fmt.Errorf("conflicts %q", moved.Conflicts)
	}
	return moved.Late, nil
}

// changing are the calls that change a disk, those that make it durable among them.
var changing = []string{
	"openat", "write", "fsync", "syncfs", "fchown", "fchmod", "fchownat", "utimensat", "fsetxattr", "fremovexattr",
	"renameat", "renameat2", "unlinkat", "mkdirat", "symlinkat", "linkat",
}

// crashes are moves that are killed.
type crashes struct {
	*volume
	base     string
	from, to object.ID
}

// fresh makes the tree what it is before the move, with files of the application's.
func (c *crashes) fresh() {
	c.t.Helper()
	c.do(os.RemoveAll(c.dir))
	c.do(os.Mkdir(c.dir, 0o755))
	tree, err := Open(c.dir)
	c.do(err)
	defer tree.Close()
	m := &Mover{Tree: tree, Source: c.repo, Intents: &intents{}, Fresh: metadata.Plain()}
	_, err = m.Move(c.t.Context(), object.ID{}, c.from)
	c.do(err)
	for path, content := range crashMine() {
		c.write(path, content)
	}
	keeper := &noteKeeper{path: filepath.Join(c.base, "note")}
	c.do(keeper.set(note{Commit: c.from, Tree: c.from}))
}

func crashMine() upstream {
	return upstream{"mine": "mine", "d/mine.o": "mine", "leaves/mine": "mine", "app": "mine"}
}

func crashFrom() upstream {
	return upstream{
		"app": "1", "same": "1", "changes": "1", "l@": "1", "bit": "1", "goes": "1", "d/goes": "1", "d/changes": "1",
		"leaves/x": "1", "gone/x/y": "1", "todir": "1", "tofile/a": "1", "tofile/b/c": "1", "tolink": "1", "written": "1",
	}
}

func crashTo() upstream {
	return upstream{
		"app": "1", "same": "1", "changes": "2", "l@": "2", "bit*": "2", "d/changes": "2", "new": "2", "nd/a/b": "2", "nd/l@": "x",
		"todir/a": "2", "todir/b/c": "2", "tofile": "2", "tolink@": "same", "written": "2",
	}
}

// start starts the move with strace's arguments, and tells whether it came to an end.
func (c *crashes) run(args ...string) (ended bool, late []string) {
	c.t.Helper()
	command := exec.Command(os.Args[0])
	if len(args) > 0 {
		command = exec.Command("strace", append(args, os.Args[0])...)
	}
	command.Env = append(os.Environ(), crashingIn+"="+c.base, "GOMAXPROCS=1")
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		c.do(json.Unmarshal(out, &late))
		return true, late
	case errors.As(err, &exit) && (exit.ExitCode() == -1 || exit.ExitCode() == 128+int(unix.SIGKILL)):
		return false, nil
	}
	c.t.Fatalf("%v: %s", err, said.String())
	return false, nil
}

// kill has the nth of those calls end the process before it is made. With --seccomp-bpf
// strace 6.1 sends no signal.
func kill(call string, n int) []string {
	return []string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n)}
}

// calls counts what a run does.
func (c *crashes) calls() map[string]int {
	c.t.Helper()
	log := filepath.Join(c.base, "log")
	if ended, _ := c.run("-f", "-qq", "--seccomp-bpf", "-o", log, "-e", "trace="+strings.Join(changing, ",")); !ended {
		c.t.Fatal("it was killed by nobody")
	}
	text, err := os.ReadFile(log)
	c.do(err)
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(line, " ")
		name, _, is := strings.Cut(strings.TrimSpace(rest), "(")
		if is && slices.Contains(changing, name) {
			count[name]++
		}
	}
	return count
}

// ended fails unless the tree is what it has to be once the move came to its end.
func (c *crashes) ended(wrote bool, late []string) {
	c.t.Helper()
	want := maps.Clone(crashTo())
	maps.Copy(want, crashMine())
	delete(want, "app*")
	var wantLate []string
	if wrote {
		want["written"] = "application"
		wantLate = []string{"written"}
	}
	c.holds(want)
	if !slices.Equal(late, wantLate) {
		c.t.Errorf("late %q, want %q", late, wantLate)
	}
	n, err := readNote(filepath.Join(c.base, "note"))
	if err != nil || n.Next != nil || n.Tree != c.to {
		c.t.Errorf("the note is %+v, %v", n, err)
	}
}

func newCrashes(t *testing.T) *crashes {
	t.Helper()
	mountns.Require(t)
	if err := exec.Command("strace", "-o", "/dev/null", "true").Run(); err != nil {
		t.Skipf("strace is needed, and a process that may be traced: %v", err)
	}
	v := newVolume(t)
	c := &crashes{volume: v, base: filepath.Dir(v.dir)}
	c.from, c.to = v.treeOf(crashFrom()), v.treeOf(crashTo())
	// What is killed is a process, not a machine: no need to wait for a disk.
	c.base += "/home"
	v.do(unix.Mount("none", c.base, "tmpfs", 0, ""))
	t.Cleanup(func() { v.do(unix.Unmount(c.base, unix.MNT_DETACH)) })
	v.do(exec.Command("cp", "-a", v.store, c.base+"/store").Run())
	c.dir = c.base + "/tree"
	v.do(os.WriteFile(c.base+"/to", []byte(c.to.String()), 0o600))
	return c
}

// mostCrashes is how many points of a move are tried, unless all are asked for.
const mostCrashes = 60

// TestMoveSurvivesACrash kills the move at each call that changes the disk, and what
// resumes it at some of them.
func TestMoveSurvivesACrash(t *testing.T) {
	c := newCrashes(t)
	c.fresh()
	if ended, late := c.run(); !ended {
		t.Fatal("it was killed by nobody")
	} else if c.ended(false, late); t.Failed() {
		t.Fatal("without any crash")
	}
	c.fresh()
	type point struct {
		call string
		n    int
	}
	var points []point
	calls := c.calls()
	for call, count := range calls {
		for n := 1; n <= count; n++ {
			points = append(points, point{call, n})
		}
	}
	slices.SortFunc(points, func(a, b point) int { return strings.Compare(a.call, b.call)*1000 + a.n - b.n })
	most := mostCrashes
	if all, err := strconv.Atoi(os.Getenv("LIKEN_TEST_CRASHES")); err == nil {
		most = all
	}
	step := max(len(points)/most, 1)
	tried, killed, begun, resumed := 0, 0, 0, 0
	for i := 0; i < len(points); i += step {
		p := points[i]
		c.fresh()
		ended, late := c.run(kill(p.call, p.n)...)
		wrote, unsaid := false, false // Killed when all was done, but before it said so.
		if tried++; !ended {
			n, err := readNote(filepath.Join(c.base, "note"))
			c.do(err)
			killed++
			if n.Next != nil {
				begun++
			}
			if wrote = tried%2 == 0 && n.Next != nil; wrote {
				c.write("written", "application")
			}
			if tried%3 == 0 {
				second := points[(i*7+3)%len(points)]
				if ended, late = c.run(kill(second.call, second.n)...); !ended {
					resumed++
					n, err = readNote(filepath.Join(c.base, "note"))
					c.do(err)
					unsaid = n.Next == nil
				}
			}
		}
		if !ended {
			ended, late = c.run()
		}
		if !ended {
			t.Fatal("it was killed by nobody")
		}
		if unsaid && wrote && len(late) == 0 {
			late = []string{"written"}
		}
		if c.ended(wrote, late); t.Failed() {
			t.Fatalf("killed before call %d of %s, the application wrote: %v", p.n, p.call, wrote)
		}
	}
	t.Logf("%v; %d points of %d, %d crashes, %d of them under way, %d more while resuming", calls, tried, len(points), killed, begun, resumed)
}
