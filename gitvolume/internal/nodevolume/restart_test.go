package nodevolume_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

// TestWrittenWhileAway is C21: what an application wrote while there was no driver is
// committed when there is one again, without another write, and how editors save is seen.
func TestWrittenWhileAway(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1", "c": "1"})
	dir := newDir(t)
	k := startKilled(t, dir, upstream.Dir)
	<-k.ready
	tree := filepath.Join(dir, "volumes", "notes", "tree")
	at := func(path string) string { return filepath.Join(tree, path) }
	check(t, os.WriteFile(at("a"), []byte("first"), 0o644))
	arrives(t, upstream, "main", files{"a": "first", "c": "1"})
	k.kill(t)

	check(t, os.WriteFile(at("a"), []byte("2"), 0o644))
	check(t, os.WriteFile(at("b"), []byte("n"), 0o644))
	check(t, os.Remove(at("c")))
	check(t, os.Mkdir(at("e"), 0o755))
	check(t, os.Chmod(at("a"), 0o700))
	k = startKilled(t, dir, upstream.Dir)
	arrives(t, upstream, "main", files{"a": "2", "b": "n"})

	check(t, os.WriteFile(at(".a.swp"), []byte("3"), 0o700))
	check(t, os.Rename(at(".a.swp"), at("a")))
	check(t, os.Link(at("a"), at("a.lnk")))
	check(t, os.Remove(at("a.lnk")))
	arrives(t, upstream, "main", files{"a": "3", "b": "n"})
	k.kill(t)
	if names := upstream.Git("log", "--all", "--name-only", "--format="); strings.Contains(names, ".a.swp") || strings.Contains(names, "a.lnk") {
		t.Error("a name that lived for a moment is in the history")
	}

	p := newProcess(t, newDir(t)) // A second node has it all.
	v := p.volume(wants(upstream.Dir)).publish()
	v.has(files{"a": "3", "b": "n"})
	for path, want := range map[string]os.FileMode{"a": 0o700, "e": 0o755 | os.ModeDir} {
		if info, err := os.Stat(filepath.Join(v.tree(), path)); err != nil || info.Mode() != want {
			t.Errorf("%s is %v, want %v (%v)", path, info, want, err)
		}
	}
	v.stop()
	p.end()
}

// TestLeftBehind is C43 (b): whatever a crash leaves in the repository, the next driver
// gets over it, the tree stays, and what is written next arrives.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	upstream, dir, v := ended(t)
	repository := v.p.repositories()[0]
	harms := map[string]func() error{
		"locks": func() error {
			return errors.Join(harm(repository, "index.lock"), harm(repository, "shallow.lock"), harm(repository, "HEAD.lock"),
				harm(repository, "refs/heads/main.lock"), harm(repository, "packed-refs.lock"), harm(repository, "config.lock"))
		},
		"HEAD":         func() error { return harm(repository, "HEAD") },
		"config":       func() error { return harm(repository, "config") },
		"packed-refs":  func() error { return harm(repository, "packed-refs") },
		"a pack index": func() error { return harmNewest(repository, "objects/pack/*.idx") },
		"a pack":       func() error { return harmNewest(repository, "objects/pack/*.pack") },
		"an object":    func() error { return harmNewest(repository, "objects/??/*") },
		"a ref": func() error {
			return harmNewest(repository, "refs/git-csi/*/*/*", "refs/git-csi/*/*")
		},
	}
	want := files{"a": "1"}
	for name, harm := range harms {
		check(t, harm())
		v.write(name, "1")
		want[name] = "1"
		p := newProcess(t, dir)
		v = p.volume(v.wish)
		check(t, v.Resume(t.Context()))
		arrives(t, upstream, "main", want)
		v.has(want)
		v.soon()
		v.stop()
		p.end()
		if out, err := exec.Command("git", "-C", repository, "fsck", "--strict").CombinedOutput(); err != nil {
			t.Errorf("%s: fsck: %v: %s", name, err, out)
		}
	}
	upstream.Git("fsck", "--strict")
}

// harm makes a file of a repository that is empty.
func harm(repository, name string) error {
	path := filepath.Join(repository, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	_ = os.Remove(path)
	return os.WriteFile(path, nil, 0o600)
}

// harmNewest empties the newest file of a pattern; there has to be none.
func harmNewest(repository string, patterns ...string) error {
	var newest string
	var when time.Time
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.ModTime().After(when) {
				newest, when = path, info.ModTime()
			}
		}
	}
	if newest == "" {
		return nil
	}
	if err := os.Chmod(newest, 0o600); err != nil {
		return err
	}
	return os.Truncate(newest, 0)
}

// TestManyCommits is C43 (d): neither descriptors nor objects pile up.
func TestManyCommits(t *testing.T) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	p := newProcess(t, newDir(t))
	w := wants(upstream.Dir)
	w.arming.Policy.Quiesce, w.arming.Policy.MaxLatency = 2*time.Millisecond, time.Hour
	v := p.volume(w).publish()
	tidy, stop := context.WithCancel(t.Context())
	tidied := make(chan struct{})
	go func() {
		defer close(tidied)
		p.store.KeepTidy(tidy, func(ctx context.Context, dir string) error { return p.command.GC(ctx, dir) })
	}()
	descriptors := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		check(t, err)
		return len(open)
	}
	before := 0
	const rounds = 120
	for i := range rounds {
		v.write("a", fmt.Sprint(i))
		tip := v.Position().Tip
		within(t, 2*time.Minute, func() bool { return v.Position().Tip != tip }, func() string { return "it is not committed" })
		if i == 10 {
			before = descriptors()
		}
	}
	v.stop()
	if after := descriptors(); after > before+20 {
		t.Errorf("%d descriptors are open, before %d commits %d were", after, rounds, before)
	}
	arrives(t, upstream, "main", files{"a": fmt.Sprint(rounds - 1)})
	// They may all have come between two looks of the one that tidies.
	packs := 0
	within(t, 2*time.Minute, func() bool {
		found, err := filepath.Glob(filepath.Join(p.repositories()[0], "objects", "pack", "*.pack"))
		check(t, err)
		packs = len(found)
		return packs <= 100
	}, func() string { return fmt.Sprintf("there are %d packs after %d commits", packs, rounds) })
	stop()
	<-tidied
	p.end()
}

// TestOtherVolumeGoes is C43 (e): what of a repository nobody needs goes, and another
// volume of it keeps what it has not pushed.
func TestOtherVolumeGoes(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	put(t, upstream, "other", files{"b": "1"})
	p := newProcess(t, newDir(t))
	v := p.volume(wants(upstream.Dir)).publish()
	w := wants(upstream.Dir)
	w.handle, w.ref = "second", "other"
	two := p.volume(w).publish()
	two.write("b", "2")
	arrives(t, upstream, "other", files{"b": "2"})
	two.stop()
	away := upstream.Dir + ".away"
	check(t, os.Rename(upstream.Dir, away))
	v.write("a", "2")
	within(t, 2*time.Minute, func() bool { return len(v.faults()) > 0 }, func() string { return "no push failed" })
	check(t, p.store.Remove("second"))
	repository := p.repositories()[0]
	for _, command := range []string{"reflog expire --expire=now --all", "gc --prune=now --quiet"} {
		out, err := exec.Command("git", slices.Concat([]string{"-C", repository}, strings.Fields(command))...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", command, err, out)
		}
	}
	check(t, os.Rename(away, upstream.Dir))
	v.TakeCredential()
	arrives(t, upstream, "main", files{"a": "2"})
	v.soon()
	v.stop()
	p.end()
}
