package inspect

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/usage"
	"liken.sh/pernode/internal/copies"
)

// node is a fake store over plain directories.
type node struct {
	dir     string
	state   copies.State
	err     error
	openErr error
	hang    chan struct{}
}

func (n *node) List() ([]string, error) { return []string{"h1"}, nil }

func (n *node) Open(volume string) (*os.File, error) {
	if n.openErr != nil {
		return nil, n.openErr
	}
	return os.Open(filepath.Join(n.dir, volume))
}

func (n *node) State(string) (copies.State, error) {
	if n.hang != nil {
		<-n.hang
	}
	return n.state, n.err
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{dir: t.TempDir(), state: copies.State{Exists: true}}
	if err := os.Mkdir(filepath.Join(n.dir, "h1"), 0o777); err != nil {
		t.Fatal(err)
	}
	return n
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
		{"deleted under the pod", func(n *node) { n.state = copies.State{Deleted: true} }, "CopyDeleted"},
		{"unmounted by hand", func(n *node) { n.state.Unmounted = true }, "TargetNotMounted"},
		{"deleted and unmounted", func(n *node) { n.state = copies.State{Deleted: true, Unmounted: true} }, "CopyDeleted TargetNotMounted"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := newNode(t)
			row.spoil(n)
			i := New(Config{Store: n, Log: slog.New(slog.DiscardHandler)})
			i.look("h1")
			var got []string
			for _, c := range i.Verdict("h1") {
				if c.Message == "" {
					t.Errorf("%s has no message", c.Reason)
				}
				mark := ""
				if c.Severity == Inaccessible {
					mark = "!"
				}
				got = append(got, mark+c.Reason)
			}
			if strings.Join(got, " ") != row.want {
				t.Errorf("verdict %q, want %q", got, row.want)
			}
			*n = *newNode(t)
			i.look("h1")
			if v := i.Verdict("h1"); len(v) != 0 {
				t.Errorf("after it was mended: %v", v)
			}
		})
	}
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

func TestAHangingDiskHangsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.hang = make(chan struct{})
		i := New(Config{Store: n, Log: slog.New(slog.DiscardHandler)})
		go i.look("h1")
		synctest.Wait()
		if v := i.Verdict("h1"); len(v) != 0 {
			t.Errorf("at once: %v", v)
		}
		time.Sleep(hungAfter + time.Second)
		if v := i.Verdict("h1"); len(v) != 1 || v[0].Reason != CopyUnreadable || v[0].Severity != Inaccessible {
			t.Errorf("after %s: %v", hungAfter, v)
		}
		if v := i.Verdict("h2"); len(v) != 0 {
			t.Errorf("another volume: %v", v)
		}
		close(n.hang)
		synctest.Wait()
		if v := i.Verdict("h1"); len(v) != 0 {
			t.Errorf("after it answered: %v", v)
		}
	})
}

func TestRunMeasuresAndLooks(t *testing.T) {
	n := newNode(t)
	i := New(Config{Store: n, Log: slog.New(slog.DiscardHandler)})
	go i.Run(t.Context())
	u, err := i.Usage(t.Context(), "h1")
	if err != nil || u.Inodes != 1 {
		t.Errorf("Usage = %+v, %v", u, err)
	}
	if _, known := i.LastUsage("h1"); !known {
		t.Error("the measurement was not kept")
	}
	i.Forget("h1")
	if _, known := i.LastUsage("h1"); known {
		t.Error("the measurement outlives its copy")
	}
	n.openErr = os.ErrNotExist
	if _, err := i.Usage(t.Context(), "h2"); !errors.Is(err, usage.ErrNotMeasured) {
		t.Errorf("a volume without a copy: %v", err)
	}
}
