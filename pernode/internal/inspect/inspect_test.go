package inspect

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/usage"
	"liken.sh/pernode/internal/copies"
)

// node is a fake store over plain directories.
type node struct {
	dir string

	mu      sync.Mutex
	listed  []string
	held    []string
	states  map[string]copies.State
	err     error
	openErr error
	listErr error
	hangs   map[string]chan struct{} // By volume, "" for the store itself.
	looks   map[string]int
}

func (n *node) wait(volume string) {
	n.mu.Lock()
	hang := n.hangs[volume]
	n.mu.Unlock()
	if hang != nil {
		<-hang
	}
}

// hang has every question about volume wait until the disk answers.
func (n *node) hang(t *testing.T, volume string) (answer func()) {
	hang := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hangs[volume] = hang
	answer = sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.hangs, volume)
		close(hang)
	})
	t.Cleanup(answer)
	return answer
}

func (n *node) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *node) List() ([]string, error) {
	n.wait("")
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.listed...), n.listErr
}

func (n *node) Holds() ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.held...), nil
}

func (n *node) Open(volume string) (*os.File, error) {
	n.wait(volume)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.openErr != nil {
		return nil, n.openErr
	}
	return os.Open(filepath.Join(n.dir, volume))
}

func (n *node) State(volume string) (copies.State, error) {
	n.mu.Lock()
	n.looks[volume]++
	n.mu.Unlock()
	n.wait(volume)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.states[volume], n.err
}

func (n *node) Space() (usage.Space, error) {
	n.wait("")
	return usage.Space{Bytes: 100, AvailableBytes: 50}, nil
}

func newNode(t *testing.T, volumes ...string) *node {
	t.Helper()
	n := &node{dir: t.TempDir(), states: map[string]copies.State{}, hangs: map[string]chan struct{}{}, looks: map[string]int{}}
	for _, volume := range volumes {
		n.add(t, volume)
	}
	return n
}

func (n *node) add(t *testing.T, volume string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(n.dir, volume), 0o777); err != nil {
		t.Fatal(err)
	}
	n.set(func() {
		n.listed = append(n.listed, volume)
		n.states[volume] = copies.State{Exists: true}
	})
}

// running is an Inspector at work, in a bubble.
func (n *node) running(t *testing.T) *Inspector {
	i := New(Config{Store: n, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); i.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return i
}

func wantVerdict(t *testing.T, i *Inspector, volume, want string) {
	t.Helper()
	var got []string
	for _, c := range i.Verdict(volume) {
		if c.Message == "" {
			t.Errorf("%s has no message", c.Reason)
		}
		mark := ""
		if c.Severity == Inaccessible {
			mark = "!"
		}
		got = append(got, mark+c.Reason)
	}
	if strings.Join(got, " ") != want {
		t.Errorf("verdict on %s is %q, want %q", volume, got, want)
	}
}

func TestVerdict(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(*node)
		want  string // reasons in order, with ! for Inaccessible
	}{
		{"well", func(*node) {}, ""},
		{"a link in its place", func(n *node) { n.err = copies.ErrNotADirectory }, "!CopyUnreadable"},
		{"input/output error", func(n *node) { n.openErr = unix.EIO }, "!CopyUnreadable"},
		{"removed meanwhile", func(n *node) { n.openErr = copies.ErrNoCopy }, ""},
		{"deleted under the pod", func(n *node) { n.states["h1"] = copies.State{Deleted: true} }, "CopyDeleted"},
		{"unmounted by hand", func(n *node) { n.states["h1"] = copies.State{Exists: true, Unmounted: true} }, "TargetNotMounted"},
		{"deleted and unmounted", func(n *node) { n.states["h1"] = copies.State{Deleted: true, Unmounted: true} }, "CopyDeleted TargetNotMounted"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := newNode(t, "h1")
			n.set(func() { row.spoil(n) })
			i := New(Config{Store: n, Log: slog.New(slog.DiscardHandler)})
			<-i.look("h1")
			wantVerdict(t, i, "h1", row.want)
			n.set(func() {
				n.err, n.openErr = nil, nil
				n.states["h1"] = copies.State{Exists: true}
			})
			<-i.look("h1")
			wantVerdict(t, i, "h1", "")
		})
	}
}

// A plugin that is started anew knows a copy that was moved away before by its
// hold alone.
func TestStartFindsAHeldCopyThatWasMovedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "h1")
		n.held = []string{"moved", "stale"}
		n.states["moved"] = copies.State{Deleted: true}
		i := n.running(t)
		wantVerdict(t, i, "moved", "CopyDeleted")
		wantVerdict(t, i, "stale", "")
		n.set(func() { n.held, n.states["moved"] = nil, copies.State{} })
		time.Sleep(lookEvery + time.Second)
		synctest.Wait()
		wantVerdict(t, i, "moved", "")
	})
}

func TestJudgeSpace(t *testing.T) {
	for _, row := range []struct {
		name string
		st   unix.Statfs_t
		want string
	}{
		{"roomy", unix.Statfs_t{Blocks: 1000, Bavail: 500, Files: 1000, Ffree: 500}, ""},
		{"full", unix.Statfs_t{Blocks: 1000, Bavail: 9, Files: 1000, Ffree: 500}, StoreFull},
		{"no inodes", unix.Statfs_t{Blocks: 1000, Bavail: 500, Files: 1000, Ffree: 9}, StoreFull},
		{"full of both", unix.Statfs_t{Blocks: 1000, Files: 1000}, StoreFull},
		{"btrfs counts no inodes", unix.Statfs_t{Blocks: 1000, Bavail: 500}, ""},
		{"read-only", unix.Statfs_t{Blocks: 1000, Bavail: 500, Flags: unix.ST_RDONLY}, StoreReadOnly},
	} {
		var got []string
		for _, c := range judgeSpace(row.st) {
			got = append(got, c.Reason)
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestRunMeasuresAndLooks(t *testing.T) {
	n := newNode(t, "h1")
	i := New(Config{Store: n, Log: slog.New(slog.DiscardHandler)})
	go i.Run(t.Context())
	u, err := i.Usage(t.Context(), "h1")
	if err != nil || u.Inodes != 1 {
		t.Errorf("Usage = %+v, %v", u, err)
	}
	if got := i.Figures(t.Context()).Bytes; len(got) != 1 || got["h1"] != u.Bytes {
		t.Errorf("measured %v", got)
	}
	i.Forget("h1")
	if got := i.Figures(t.Context()).Bytes; len(got) != 0 {
		t.Errorf("the measurement outlives its copy: %v", got)
	}
	n.set(func() { n.openErr = os.ErrNotExist })
	if _, err := i.Usage(t.Context(), "h2"); !errors.Is(err, usage.ErrNotMeasured) {
		t.Errorf("a volume without a copy: %v", err)
	}
}
