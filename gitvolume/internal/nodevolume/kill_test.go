package nodevolume_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// The variables of a child that is a driver to be killed, and of who wants more kills or
// those of another run again.
const (
	killedStore = "LIKEN_TEST_KILLED_STORE"
	killedURL   = "LIKEN_TEST_KILLED_URL"
	killsWanted = "LIKEN_TEST_KILLS"
	killsSeed   = "LIKEN_TEST_KILLS_SEED"
)

// wantsLong is a wish that no number of kills has left alone.
func wantsLong(url string) wish {
	w := wants(url)
	w.began = time.Now().Add(-24 * time.Hour)
	w.arming.Policy.Quiesce, w.arming.Policy.MaxLatency = 50*time.Millisecond, 300*time.Millisecond
	return w
}

// runUntilKilled is a driver with one volume, whose tree an application may have all the
// time. SIGTERM ends it well.
func runUntilKilled(dir, url string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	p, err := begin(dir)
	if err != nil {
		return err
	}
	v, err := p.tryVolume(wantsLong(url))
	if err != nil {
		return err
	}
	if v.Position().Tree == (store.Identity{}) {
		err = v.Publish(context.Background())
	} else {
		err = v.Resume(context.Background())
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	go p.tidyUntilKilled(dir)
	<-stop
	return v.Stop(context.Background(), 30*time.Second)
}

// killed is a child that runs.
type killed struct {
	cmd    *exec.Cmd
	errors *strings.Builder
	ready  chan struct{}
}

func startKilled(t *testing.T, dir, url string) *killed {
	t.Helper()
	executable, err := os.Executable()
	check(t, err)
	k := &killed{cmd: exec.Command(executable), errors: &strings.Builder{}, ready: make(chan struct{})}
	k.cmd.Env = append(os.Environ(), killedStore+"="+dir, killedURL+"="+url)
	k.cmd.Stderr = k.errors
	out, err := k.cmd.StdoutPipe()
	check(t, err)
	check(t, k.cmd.Start())
	go func() {
		if bufio.NewScanner(out).Scan() {
			close(k.ready)
		}
	}()
	return k
}

// kill ends the child at once. It must not have ended by itself.
func (k *killed) kill(t *testing.T) {
	t.Helper()
	check(t, k.cmd.Process.Kill())
	if err := k.cmd.Wait(); err == nil || k.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the driver ended by itself: %v: %s", err, k.errors)
	}
}

// application writes a tree until it is told to stop.
type application struct {
	dir  string
	rand *rand.Rand

	mu      sync.Mutex
	written files
	n       int
}

// write does one random thing. Each content is another, so that one that is committed
// twice can be told.
func (a *application) write() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	path := fmt.Sprintf("own/%d/%d", a.rand.IntN(5), a.rand.IntN(30))
	full := filepath.Join(a.dir, path)
	if a.rand.IntN(6) == 0 && a.written[path] != "" {
		delete(a.written, path)
		return os.Remove(full)
	}
	content := fmt.Sprintf("content %d", a.n)
	a.written[path] = content
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	if a.rand.IntN(3) > 0 {
		return os.WriteFile(full, []byte(content), 0o644)
	}
	// As editors save.
	if err := os.WriteFile(full+".part", []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(full+".part", full)
}

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	check(t, err)
	return n
}

// The driver is killed at any instant while the application and others write, and while
// the garbage of its repository is collected. Nothing that was written is lost, nothing is committed twice, and no repository is harmed.
func TestKilled(t *testing.T) {
	t.Parallel()
	seed := uint64(number(t, killsSeed, time.Now().UnixNano()))
	t.Logf("%s=%d has these kills again", killsSeed, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	dir := newDir(t)
	first := startKilled(t, dir, upstream.Dir)
	select {
	case <-first.ready:
	case <-time.After(time.Minute):
		t.Fatalf("the driver does not start: %s", first.errors)
	}
	app := &application{dir: filepath.Join(dir, "volumes", "notes", "tree"), rand: rand.New(rand.NewPCG(seed, 1)), written: files{}}
	theirs := files{"a": "1"}
	next := first
	for range number(t, killsWanted, 12) {
		upstreamAt := random.IntN(2) // In every second life somebody else writes too.
		for end := time.Now().Add(time.Duration(random.IntN(1500)) * time.Millisecond); time.Now().Before(end); {
			check(t, app.write())
			if upstreamAt == 1 && random.IntN(30) == 0 {
				upstreamAt = 0
				path := fmt.Sprintf("up/%d", random.IntN(20))
				theirs[path] = fmt.Sprintf("theirs %d", app.n)
				put(t, upstream, "main", files{path: theirs[path]})
			}
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		next.kill(t)
		next = startKilled(t, dir, upstream.Dir)
	}
	check(t, next.cmd.Process.Signal(syscall.SIGTERM))
	if err := next.cmd.Wait(); err != nil && next.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Fatalf("the driver ended with %v: %s", err, next.errors)
	}
	converged(t, dir, upstream, app.written, theirs)
}

// converged starts a driver once more and expects all that anybody wrote to be in the tree
// and on the remote, once.
func converged(t *testing.T, dir string, upstream *gittest.Bare, own, theirs files) {
	t.Helper()
	p := newProcess(t, dir)
	v := p.volume(wantsLong(upstream.Dir)).publish()
	want := maps.Clone(theirs)
	maps.Copy(want, own)
	// A volume that met others at each try is on its side branch, with what they had then.
	branch := "main"
	if v.Position().Diverged {
		branch = "main.notes"
		for path := range theirs {
			delete(want, path)
		}
		got := treeOf(t, v.tree())
		maps.DeleteFunc(got, func(path, _ string) bool { return theirs[path] != "" })
		if !maps.Equal(got, want) {
			t.Errorf("the tree has %s, want %s", text(got), text(want))
		}
		want = treeOf(t, v.tree())
	}
	v.has(want)
	arrives(t, upstream, branch, want)
	v.stop()
	for _, reason := range v.report.Abnormal() {
		if reason.Reason != string(report.Diverged) {
			t.Errorf("%+v lasts", reason)
		}
	}
	p.collected(dir)
	repository := p.repositories()[0]
	p.end()
	upstream.Git("fsck", "--strict")
	if out, err := exec.Command("git", "-C", repository, "fsck", "--strict").CombinedOutput(); err != nil {
		t.Errorf("fsck of the store's repository: %v: %s", err, out)
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, "aside", "*")); len(aside) > 0 {
		t.Errorf("%q was set aside", aside)
	}
	seen := map[string]bool{}
	log := upstream.Git("log", "--all", "--author=git-csi-driver", "--format=", "--raw", "--no-abbrev", "--no-renames", "--", "own")
	for line := range strings.Lines(log) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[4] == "D" {
			continue
		}
		change := fields[3] + " " + fields[5]
		if seen[change] {
			t.Errorf("%s was committed twice", change)
		}
		seen[change] = true
	}
	if len(seen) == 0 {
		t.Error("the volume committed nothing")
	}
}
