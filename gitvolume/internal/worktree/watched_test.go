package worktree

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/watch"
)

// patient is the deadline for what has to happen at some time on a loaded machine.
const patient = 60 * time.Second

// follower looks where the hints of a watch lead to, and commits when it is told to, as
// the driver does.
type follower struct {
	*volume
	w *watch.Watch
	// paths and subtrees are those that hints named since the last commit, and seen is what
	// was found there.
	paths, subtrees []string
	seen            *Memory
	scans           int // Of its own accord.
	wholes          int // All looks at everything, also those that hints asked for.
}

func (v *volume) watched(trees *watch.Trees) *follower {
	v.t.Helper()
	w, err := trees.Start(v.dir)
	v.do(err)
	return &follower{volume: v, w: w}
}

// pending is all that changed since the last commit, as far as hints tell.
func (f *follower) pending(blobs Blobs) *Result {
	f.t.Helper()
	request := f.request()
	request.Paths, request.Subtrees, request.Blobs, request.Seen = f.paths, f.subtrees, blobs, f.seen
	return f.scan(request)
}

// look looks at what a hint names.
func (f *follower) look(h watch.Hint) *Result {
	f.t.Helper()
	if h.Everything {
		f.wholes++
		h.Subtrees = []string{"."}
	}
	f.paths, f.subtrees = append(f.paths, h.Paths...), append(f.subtrees, h.Subtrees...)
	result := f.pending(Hasher{})
	f.seen, f.subtrees = result.Memory, append(f.subtrees, result.Waiting...)
	if h.Everything {
		for _, path := range result.Found {
			f.w.Found(h, path)
		}
	}
	if len(h.Subtrees) > 0 {
		f.w.Check(h, f.directories(h.Subtrees))
	}
	return result
}

// keep commits what changed.
func (f *follower) keep() {
	f.t.Helper()
	result := f.adopt(f.pending(f.repo))
	f.paths, f.subtrees, f.seen = nil, result.Waiting, nil
}

// comesTo commits what changed if that is what another tree of the same content has
// committed. Before all hints are there it is not; and what is committed then may be what
// an ignore file would have kept out of which the hint comes later.
func (f *follower) comesTo(other *volume) bool {
	f.t.Helper()
	after := *f.volume
	after.adopt(f.pending(f.repo))
	if !after.agrees(other) {
		return false
	}
	f.keep()
	return true
}

// directories are those in and below some.
func (f *follower) directories(subtrees []string) func(func(string, watch.Inode) bool) {
	device := f.tree.Identity().Device
	return func(yield func(string, watch.Inode) bool) {
		for _, subtree := range subtrees {
			for path, inode := range f.seen.Directories(subtree) {
				if !yield(path, watch.Inode{Device: device, Number: inode}) {
					return
				}
			}
		}
	}
}

// hints follows all that there are.
func (f *follower) hints() {
	f.t.Helper()
	for {
		select {
		case <-f.w.C():
			f.look(f.w.Take())
		default:
			return
		}
	}
}

// everything is a scan of its own accord, as from time to time, and when the watch says
// that its hints are not to be relied on.
func (f *follower) everything() *Result {
	f.t.Helper()
	f.scans++
	return f.look(f.w.TakeAll())
}

// until follows hints, and scans while the watch is degraded, until it is done.
func (f *follower) until(what string, done func() bool) {
	f.t.Helper()
	deadline := time.After(patient)
	for f.hints(); !done(); f.hints() {
		if f.w.State().Degraded {
			f.everything()
		}
		pause := time.NewTimer(10 * time.Millisecond)
		select {
		case <-f.w.C():
			f.look(f.w.Take())
		case <-pause.C:
		case <-deadline:
			f.t.Fatalf("it never comes to this: %s; state %+v, committed\n%s", what, f.w.State(), f.list(f.root))
		}
		pause.Stop()
	}
}

// agrees tells whether it has committed what another tree of the same content has.
func (v *volume) agrees(other *volume) bool {
	left := func(v *volume) map[string]Reason { return maps.Collect(v.memory.Skipped()) }
	return v.root == other.root && v.record.Equal(other.record) && maps.Equal(left(v), left(other)) && v.memory.Tracked() == other.memory.Tracked()
}

// equalsGitWithout is equalsGit in a tree of which git cannot add all: it fails at a
// pipe where a file was, and at names that it does not hold.
func (v *volume) equalsGitWithout() {
	v.t.Helper()
	var pipes []string
	v.do(filepath.WalkDir(v.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeNamedPipe != 0 {
			pipes = append(pipes, path)
		}
		return err
	}))
	for _, path := range pipes {
		v.do(os.Remove(path))
	}
	v.equalsGit(":(exclude,glob,icase)**/.git/**", ":(exclude,glob)**/git~1/**")
	for _, path := range pipes {
		v.do(unix.Mkfifo(path, 0o644))
	}
}

// TestHintsAndScansAgreeWithGit has the same random edits be made in three trees. Those
// of the first are found by hints alone, those of the second by scans of everything, and
// those of the third by both, whenever each happens to come.
func TestHintsAndScansAgreeWithGit(t *testing.T) {
	fewer(t, "8")
	trees := watch.New()
	kinds := append(edits(), "remove", "rename", "rename", "pipe", "barred", "barred")
	scans := 0
	rapid.Check(t, func(rt *rapid.T) {
		byScan := newVolume(t)
		byHint, byBoth := newVolume(t).watched(trees), newVolume(t).watched(trees)
		volumes := []*volume{byHint.volume, byScan, byBoth.volume}
		for _, v := range volumes {
			v.t = drawn{t, rt}
		}
		defer func() {
			byHint.w.Stop()
			byBoth.w.Stop()
			for _, v := range volumes {
				v.repo.Close()
				v.do(os.RemoveAll(filepath.Dir(v.dir)))
			}
		}()
		class := rapid.SampledFrom([][]string{nil, {"*.b"}, {"/cache/", "!a"}}).Draw(rt, "class")
		for _, v := range volumes {
			v.class = class
			v.do(os.MkdirAll(v.at("a/b"), 0o755))
		}
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			var seen *Memory
			for range rapid.IntRange(1, 15).Draw(rt, "edits") {
				edit := drawEdit(rt, kinds)
				for _, v := range volumes {
					edit(&editor{v: v})
				}
				switch rapid.SampledFrom([]string{"", "", "hints", "scan", "both"}).Draw(rt, "look") {
				case "hints":
					byHint.hints()
				case "scan":
					request := byScan.request()
					request.Blobs, request.Seen = Hasher{}, seen
					seen = byScan.scan(request).Memory
				case "both":
					byBoth.hints()
					byBoth.everything()
				}
			}
			request := byScan.request()
			request.Seen = seen
			byScan.adopt(byScan.scan(request))
			byScan.equalsGitWithout()
			byHint.until("the hints lead to what a scan found", func() bool { return byHint.comesTo(byScan) })
			byBoth.everything()
			if !byBoth.comesTo(byScan) {
				byBoth.keep()
				rt.Fatalf("a scan after hints found\n%s\none without\n%s", byBoth.list(byBoth.root), byScan.list(byScan.root))
			}
			byBoth.until("the watch is not degraded", func() bool { return !byBoth.w.State().Degraded })
			if result := byBoth.everything(); len(result.Changes)+len(result.Metadata)+len(result.Found) != 0 {
				rt.Fatalf("nothing happened, and a scan found %q, changes %q, records %v", result.Found, changed(result), result.Metadata)
			}
		}
		scans += byHint.scans
	})
	t.Logf("the watch had the first tree scanned %d times", scans)
}

// drawn has rapid tell of what failed, with what it drew.
type drawn struct {
	testing.TB
	rt *rapid.T
}

func (d drawn) Fatal(args ...any)                 { d.rt.Fatal(args...) }
func (d drawn) Fatalf(format string, args ...any) { d.rt.Fatalf(format, args...) }

// fewer has rapid check less often, unless the flag is set: most of the time is waited in.
func fewer(t *testing.T, checks string) {
	t.Helper()
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			checks = f.Value.String()
		}
	})
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	if err := f.Value.Set(checks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(was) })
}
