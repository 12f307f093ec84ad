package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/store"
)

// Without a class there is nothing to read again: the end of the terminal is the end.
func TestHangUpWithoutAClass(t *testing.T) {
	t.Parallel()
	// These tests may run under nohup, and what they start ignores what they ignore: not
	// what they catch.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGHUP)
	defer signal.Stop(caught)
	h := newHome(t)
	p := h.watch("d")
	p.awaits("not armed", 1)
	p.Signal(unix.SIGHUP)
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d after SIGHUP, want 0", code)
	}
}

// A file that no commit takes is on this machine alone, and the last line says so.
func TestTheEndWithAFileLeftOut(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	h.write("d/a", "1")
	h.write("d/large", strings.Repeat("x", 1<<20+1))
	p.awaits(`left out: "large" is left out`, 1)
	p.stop(0)
	if said := p.out.String(); !strings.HasSuffix(said, "stopped: all is on the remote but for 1 path that is left out\n") {
		t.Errorf("it says\n%s", said)
	}
}

// What did not arrive is named, all of it.
func TestWhatArrived(t *testing.T) {
	t.Parallel()
	unrecorded := store.Position{Metadata: object.ID{1}}
	for _, test := range []struct {
		position store.Position
		leftOut  int
		want     string
	}{
		{store.Position{}, 0, "all is on the remote"},
		{store.Position{}, 2, "all is on the remote but for 2 paths that are left out"},
		{unrecorded, 0, "all is on the remote but for modes, owners and empty directories"},
		{unrecorded, 1, "all is on the remote but for modes, owners and empty directories, and for 1 path that is left out"},
	} {
		if got := arrived(test.position, test.leftOut); got != test.want {
			t.Errorf("%+v with %d paths: %q, want %q", test.position, test.leftOut, got, test.want)
		}
	}
}

// An error of a full disk says which disk that may be.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	w := &watcher{options: options{store: "/s"}, place: place{dir: "/d"}}
	full := fmt.Errorf("commit: %w", unix.ENOSPC)
	if got := w.explained(full).Error(); got != `commit: no space left on device: make room for the store "/s" and for "/d"` {
		t.Errorf("it says %q", got)
	}
}

// While the branch is gone nothing is pushed, by the next start neither; the last line
// says so.
func TestADeletedBranch(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.remote.Grow("main", "a", "1")
	h.remote.Grow("other", "a", "1")
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	h.remote.Git("update-ref", "-d", "refs/heads/main")
	h.write("d/b", "1")
	p.stop(exitFailed)
	if said := p.out.String(); !strings.Contains(said, "nothing is pushed until main exists again: make the branch again") || strings.Contains(said, "next start pushes") {
		t.Errorf("it says\n%s", said)
	}
}

// What is on the side branch is on the remote, and not on the branch that was asked for.
func TestTheEndOnASideBranch(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.remote.Grow("main", "a", "1\n")
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	h.remote.Grow("main", "a", "2\n")
	h.write("d/a", "3\n")
	p.stop(0)
	branches := strings.Fields(h.remote.Git("for-each-ref", "--format=%(refname:short)", "refs/heads"))
	if len(branches) != 2 {
		t.Fatalf("the branches are %q", branches)
	}
	side := strings.TrimSpace(strings.Replace(strings.Join(branches, ""), "main", "", 1))
	if said := p.out.String(); !strings.HasSuffix(said, "the branch is "+side+", until it is merged into main\n") {
		t.Errorf("the side branch is %q, and it says\n%s", side, said)
	}
}

// A second signal does not wait for a remote that takes its time.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	busy := h.write("busy", "")
	defer os.Remove(busy)
	h.remote.Hook("pre-receive", fmt.Sprintf("while [ -e '%s' ]; do sleep 0.05; done", busy))
	for n, second := range []struct {
		signal  unix.Signal
		trapped string // What ignores the signals at the start.
		want    int
	}{
		{unix.SIGTERM, "", 143},
		{unix.SIGINT, "INT TERM", 130},
	} {
		p := h.watchTrapped(second.trapped, fmt.Sprint("d", n), "--class", h.fast(), "--stop-push-timeout", "10m")
		p.awaits("armed: class fast", 1)
		h.write(fmt.Sprintf("d%d/a", n), fmt.Sprint(n))
		p.Signal(unix.SIGTERM)
		p.awaits("stopping: ", 1)
		p.Signal(second.signal)
		if code := p.Wait(); code != second.want {
			t.Errorf("exit code %d, want %d", code, second.want)
		}
	}
}

// watchTrapped is watch with signals ignored by who starts it.
func (h *home) watchTrapped(signals, dir string, more ...string) *running {
	h.t.Helper()
	program, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := h.command()
	cmd.Path = "/bin/sh"
	cmd.Args = append([]string{"sh", "-c", "trap '' " + signals + `; exec "$0" "$@"`, program,
		"watch", h.path(dir), "--url", h.remote.Dir, "--allow-local-urls"}, more...)
	if signals == "" {
		cmd.Args[2] = `exec "$0" "$@"`
	}
	return h.run(cmd)
}

// A process that is to outlive its terminal does.
func TestHangUpUnderNohup(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.watchTrapped("HUP", "d")
	p.awaits("not armed", 1)
	p.Signal(unix.SIGHUP)
	h.write("d/a", "1")
	p.awaits("would commit: A a", 1)
	p.stop(0)
}

// What is deleted under the process is named, with what the next start does of it.
func TestDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ deleted, want string }{
		"the directory": {"d", " is gone, with what was not committed: the next start makes it again of the last commit\n"},
		"the store":     {"state", ": watch an empty directory and move the files there afterwards\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.remote.Grow("main", "a", "1")
			p := h.watch("d", "--class", h.fast())
			p.awaits("armed: class fast", 1)
			h.deleteAll(row.deleted)
			if row.deleted != "d" {
				h.write("d/b", "1")
			}
			p.stop(exitFailed)
			if said := p.out.String(); !strings.HasSuffix(said, row.want) || strings.Contains(said, "is at the next start") {
				t.Errorf("it says\n%s", said)
			}
		})
	}
}

// The end leaves nothing where sockets are, nor does a start that is refused.
func TestNoSocketsAreLeft(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	isEmpty := func(when string) {
		if entries, err := os.ReadDir(h.runtime); err != nil || len(entries) > 0 {
			t.Errorf("%s there are %v, %v", when, entries, err)
		}
	}
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	p.stop(0)
	isEmpty("after the end")
	h.start("watch", h.path("e"), "--allow-local-urls", "--url", h.path("nowhere.git")).refused("nowhere.git")
	isEmpty("after a refusal")
}
