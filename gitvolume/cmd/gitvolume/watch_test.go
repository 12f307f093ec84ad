package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/gitvolume/internal/gittest"
)

const metadataOfMain = "refs/git-csi/metadata:refs%2Fheads%2Fmain"

// overSSH is the arguments by which a real sshd is asked for the remote, and which host
// keys are trusted.
func (h *home) overSSH() (arguments []string, server *gittest.SSHD) {
	h.t.Helper()
	key := gittest.NewKey(h.t, "ed25519")
	server = gittest.StartSSHD(h.t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	return []string{"--url", server.URL(h.remote.Dir), "--ssh-key", h.write("id", key.PEM)}, server
}

func (h *home) modeIs(path string, want os.FileMode) {
	h.t.Helper()
	info, err := os.Lstat(h.path(path))
	if err != nil {
		h.t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		h.t.Errorf("%s has mode %o, want %o", path, got, want)
	}
}

func (h *home) chmod(path string, mode os.FileMode) {
	h.t.Helper()
	if err := os.Chmod(h.path(path), mode); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) mkdir(path string, mode os.FileMode) {
	h.t.Helper()
	if err := os.MkdirAll(h.path(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	h.chmod(path, mode)
}

// What is written is on the remote, with what git does not keep, and comes back in another
// directory; over ssh, with a host key that is trusted at first sight or by a file.
func TestHistoryOverSSH(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	ssh, server := h.overSSH()
	h.mkdir("notes", 0o750)
	first := h.start(append([]string{"watch", "notes", "--class", h.fast()}, ssh...)...)
	first.awaits("armed: class fast", 1)
	h.write("notes/secret", "s")
	h.chmod("notes/secret", 0o600)
	h.mkdir("notes/spool", 0o700)
	first.awaits(" pushed: ", 1)
	h.write("notes/late", "l")
	first.stop(0)
	if said := first.out.String(); !strings.HasSuffix(said, "stopped: all is on the remote\n") {
		t.Errorf("it says\n%s", said)
	}
	if said := first.Log.String(); said != "" {
		t.Errorf("standard error has %q", said)
	}
	if subjects := h.remote.Git("log", "--format=%s", "main"); subjects != "Update late\nUpdate secret" {
		t.Errorf("the log is %q", subjects)
	}
	if body := h.remote.Git("log", "-1", "--format=%b", "main"); !strings.Contains(body, "A late\n\nVolume: watch/notes-") {
		t.Errorf("a commit says %q", body)
	}
	if record := h.remote.Git("show", metadataOfMain); strings.Contains(record, "dir") || !strings.Contains(record, "0700") {
		t.Errorf("the record is %q", record)
	}

	h.write("hosts", server.KnownHosts())
	second := h.start(append([]string{"watch", h.path("copy"), "--known-hosts", h.path("hosts")}, ssh...)...)
	second.awaits("not armed: what is written is not committed: there is no --class", 1)
	h.modeIs("copy/secret", 0o600)
	h.modeIs("copy/spool", 0o700)
	h.modeIs("notes", 0o750)
	h.write("copy/secret", "changed")
	h.write("copy/new", "n")
	second.awaits("would commit: M secret\n", 1)
	second.awaits("would commit: A new\n", 1)
	second.stop(0)
	if said := second.out.String(); !strings.Contains(said, "stopping: what was written last is not committed; a second") {
		t.Errorf("it says\n%s", said)
	}
	if said := second.out.String(); !strings.HasSuffix(said, "stopped: nothing is committed while there is no class in force\n") {
		t.Errorf("it says\n%s", said)
	}
	if count := h.remote.Git("rev-list", "--count", "main"); count != "2" {
		t.Errorf("%s commits, want 2: the second directory is not armed", count)
	}
	t.Run("another host key than the first", func(t *testing.T) {
		kept := h.path("first", "ssh", "known_hosts")
		h.write("first/ssh/known_hosts", strings.Replace(server.KnownHosts(), server.HostKeys[0].Authorized[12:], gittest.NewKey(t, "ed25519").Authorized[12:], 1))
		h.write("first/format", "1\n")
		h.start(append([]string{"watch", h.path("fourth"), "--store", h.path("first")}, ssh...)...).refused("not the one first seen", "delete its line from "+kept)
	})
	t.Run("another host key", func(t *testing.T) {
		h.write("hosts", strings.Replace(server.KnownHosts(), server.HostKeys[0].Authorized[12:], gittest.NewKey(t, "ed25519").Authorized[12:], 1))
		p := h.start(append([]string{"watch", h.path("third"), "--known-hosts", h.path("hosts")}, ssh...)...)
		p.refused("does not prove its identity", "SHA256:", "which --known-hosts "+h.path("hosts")+" does not trust")
		if strings.Contains(p.Log.String(), "Secret") {
			t.Errorf("it speaks of a Secret: %s", p.Log.String())
		}
	})
}

// A class that is changed counts after SIGHUP; one that is made unusable pauses.
func TestTheClassIsReadAgain(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	h.write("fast.yaml", strings.Replace(fastClass, "push.quiesce: 5s", "push.quiesce: 1s", 1))
	p.Signal(unix.SIGHUP)
	p.awaits("not armed: what is written is not committed: --class "+h.path("fast.yaml")+": class fast: parameter push.quiesce", 1)
	h.write("d/a", "1")
	p.awaits("would commit: A a\n", 1)
	h.write("fast.yaml", strings.Replace(fastClass, "push.quiesce: 5s", `armed: "false"`, 1))
	p.Signal(unix.SIGHUP)
	p.awaits("it pauses the volume", 1)
	p.awaits("would commit: A a\n", 2)
	h.write("fast.yaml", fastClass)
	p.Signal(unix.SIGHUP)
	p.awaits("armed: class fast", 2)
	p.stop(0)
	if files := h.remote.Git("ls-tree", "--name-only", "main"); files != "a" {
		t.Errorf("the remote has %q", files)
	}
}

// What a dead remote did not take is said, and goes there at the next start.
func TestADeadRemote(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	h.write("d/a", "1")
	away := h.remote.Dir + ".away"
	if err := os.Rename(h.remote.Dir, away); err != nil {
		t.Fatal(err)
	}
	p.stop(exitFailed)
	if said := p.out.String(); !strings.Contains(said, " not pushed: main: ") || !strings.Contains(said, "there are commits on this machine alone, in "+h.path("state")) {
		t.Errorf("it says\n%s", said)
	}
	p = h.watch("d", "--class", h.fast())
	p.awaits(" stale: ", 1)
	if err := os.Rename(away, h.remote.Dir); err != nil {
		t.Fatal(err)
	}
	p.stop(0)
	if files := h.remote.Git("ls-tree", "--name-only", "main"); files != "a" {
		t.Errorf("the remote has %q", files)
	}
}

// A process that is killed has lost nothing, nor one of which nobody reads the lines.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	h.write("d/a", "1")
	p.Kill()
	h.write("d/b", "1")

	cmd := h.command("watch", h.path("d"), "--url", h.remote.Dir, "--allow-local-urls", "--class", h.fast())
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = write
	p = h.run(cmd)
	_, _ = write.Close(), read.Close()
	process.Await(t, "the remote to have both files", func() bool {
		files, _ := h.remote.TryGit("ls-tree", "--name-only", "main")
		return files == "a\nb"
	})
	h.write("d/c", "1")
	p.stop(0)
	if files := h.remote.Git("ls-tree", "--name-only", "main"); files != "a\nb\nc" {
		t.Errorf("the remote has %q", files)
	}
}

// A directory that is not the one whose history this is, is never committed.
func TestAnotherDirectory(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.remote.Grow("main", "a", "1")
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	p.stop(0)
	if err := os.Rename(h.path("d"), h.path("old")); err != nil {
		t.Fatal(err)
	}
	h.mkdir("d", 0o755)
	h.watch("d", "--class", h.fast()).refused("is not the directory that was watched", "mount it", "move it away")
	if err := os.Remove(h.path("d")); err != nil {
		t.Fatal(err)
	}
	p = h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	p.awaits("wrong: the tree of this node was lost; it was made again of the last commit", 1)
	if got := h.read("d/a"); got != "1" {
		t.Errorf("the file is %q", got)
	}
	p.stop(0)

	h.watch("d", "--ref", "other").refused("has its history on main", "other", "another directory")
	// Nor is it taken from under the process.
	p = h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	if err := os.Rename(h.path("d"), h.path("older")); err != nil {
		t.Fatal(err)
	}
	h.write("d/b", "1")
	p.stop(exitFailed)
	if said := p.out.String(); !strings.Contains(said, "stopped: "+strconv.Quote(h.path("d"))+" is not the directory that was watched") {
		t.Errorf("it says\n%s", said)
	}
	if files := h.remote.Git("ls-tree", "--name-only", "main"); files != "a" {
		t.Errorf("the remote has %q", files)
	}
}

// A mistake at the first try is in nobody's way.
func TestAMistakeIsForgotten(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.start("watch", h.path("d"), "--allow-local-urls", "--url", h.path("nowhere.git")).refused("nowhere.git")
	p := h.watch("d")
	p.awaits("not armed", 1)
	p.stop(0)
}

// Two spellings of a directory are one, with one store.
func TestADirectoryThroughALink(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.watch("made/of/nothing")
	p.awaits("not armed", 1)
	if err := os.Symlink(h.path("made"), h.path("link")); err != nil {
		t.Fatal(err)
	}
	h.watch("link/of/nothing").refused("another gitvolume watches", strconv.Quote(h.path("made/of/nothing")))
	p.stop(0)
	stores, err := filepath.Glob(h.path("state/gitvolume/nothing-*"))
	if err != nil || len(stores) != 1 {
		t.Errorf("the stores are %q, %v", stores, err)
	}
}
