package nodevolume_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

// clash is what upstream and the pod do to the same files, and what the side branch has then.
type clash struct {
	before, upstream files
	pod              func(t *testing.T, v *volume)
	side             files
}

func clashes() map[string]clash {
	return map[string]clash{
		"same line": {
			before: files{"f": "1\n"}, upstream: files{"f": "theirs\n"},
			pod: func(_ *testing.T, v *volume) { v.write("f", "mine\n") }, side: files{"f": "mine"},
		},
		"deleted upstream, changed here": {
			before: files{"f": "1", "g": "1"}, upstream: files{"f": ""},
			pod: func(_ *testing.T, v *volume) { v.write("f", "mine") }, side: files{"f": "mine", "g": "1"},
		},
		"changed upstream, deleted here": {
			before: files{"f": "1", "g": "1"}, upstream: files{"f": "theirs"},
			pod:  func(t *testing.T, v *volume) { check(t, os.Remove(filepath.Join(v.tree(), "f"))) },
			side: files{"g": "1"},
		},
		"renamed to two names": {
			before: files{"a": "a text of some length that is the same\n", "g": "1"}, upstream: files{"a": "", "b": "a text of some length that is the same\n"},
			pod: func(t *testing.T, v *volume) {
				check(t, os.Rename(filepath.Join(v.tree(), "a"), filepath.Join(v.tree(), "c")))
			},
			side: files{"c": "a text of some length that is the same", "g": "1"},
		},
		"a file and a directory": {
			before: files{"x": "1"}, upstream: files{"x": "", "x/y": "another text"},
			pod: func(_ *testing.T, v *volume) { v.write("x", "mine") }, side: files{"x": "mine"},
		},
		"other bytes added by both": {
			before: files{"g": "1"}, upstream: files{"f": "\x00\x01theirs"},
			pod: func(_ *testing.T, v *volume) { v.write("f", "\x00\x01mine") }, side: files{"f": "\x00\x01mine", "g": "1"},
		},
	}
}

// TestConflicts is C41 (a) to (f): what the pod wrote stays in its tree and goes to the
// side branch, and upstream's stays on the ref.
func TestConflicts(t *testing.T) {
	for name, row := range clashes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := gittest.NewBare(t)
			put(t, upstream, "main", row.before)
			p := newProcess(t, newDir(t))
			v := p.volume(wants(upstream.Dir)).publish()
			put(t, upstream, "main", row.upstream)
			theirs := filesOf(upstream, "main")
			row.pod(t, v)
			before := inodes(t, v.tree())
			arrives(t, upstream, "main.notes", row.side)
			v.soon(report.Diverged)
			if after := inodes(t, v.tree()); !maps.Equal(before, after) {
				t.Errorf("the pod's files were %v and are %v", before, after)
			}
			for path, content := range treeOf(t, v.tree()) {
				if strings.TrimSuffix(content, "\n") != row.side[path] {
					t.Errorf("%s is %q", path, content)
				}
			}
			v.write("later", "1")
			row.side["later"] = "1"
			arrives(t, upstream, "main.notes", row.side)
			v.stop()
			if got := filesOf(upstream, "main"); !maps.Equal(got, theirs) {
				t.Errorf("main has %s, want %s", text(got), text(theirs))
			}
			if n := p.events.count("GitVolumeDiverged"); n != 1 {
				t.Errorf("%d Events tell of it, want 1", n)
			}

			// A merge of the side branch by hand, the volume's side throughout, heals.
			tree := upstream.Git("rev-parse", "main.notes^{tree}")
			merge := upstream.Git("commit-tree", "-m", "merge", "-p", "main", "-p", "main.notes", tree)
			upstream.SetRef("refs/heads/main", merge)
			check(t, v.Publish(t.Context()))
			v.faultsAre()
			v.write("healed", "1")
			row.side["healed"] = "1"
			arrives(t, upstream, "main", row.side)
			v.stop()
			if tip := upstream.Tip("refs/heads/main.notes"); tip != "" {
				t.Error("the side branch is still there")
			}
			p.end()
		})
	}
}

// inodes tells of each file which one it is and when it was written.
func inodes(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for path := range treeOf(t, dir) {
		var stat unix.Stat_t
		check(t, unix.Lstat(filepath.Join(dir, path), &stat))
		found[path] = fmt.Sprint(stat.Ino, stat.Mtim)
	}
	return found
}

// TestRace is C41 (h): somebody pushes all the time, and the volume ends on the ref or on
// its side branch.
func TestRace(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	p := newProcess(t, newDir(t))
	v := p.volume(wants(upstream.Dir)).publish()
	want := files{}
	n := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); n++ {
		put(t, upstream, "main", files{"theirs": fmt.Sprint(n)})
		if n%5 == 0 {
			path := fmt.Sprintf("own/%d", n)
			v.write(path, "1")
			want[path] = "1"
		}
	}
	within(t, 2*time.Minute, func() bool {
		for _, branch := range []string{"main", "main.notes"} {
			got := filesOf(upstream, branch)
			maps.DeleteFunc(got, func(path, _ string) bool { return want[path] == "" })
			if maps.Equal(got, want) {
				return true
			}
		}
		return false
	}, func() string { return "what was written is on no branch" })
	v.stop()
	if n := p.events.count("GitVolumeRebased"); n > 3*len(want)+3 {
		t.Errorf("%d rebases of %d commits", n, len(want))
	}
	p.end()
	upstream.Git("fsck", "--strict")
}

// Two to four writers of disjoint files on one ref converge on it, without a side branch.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	var volumes []*volume
	want := files{"a": "1"}
	for i := range 3 {
		p := newProcess(t, newDir(t))
		w := wants(upstream.Dir)
		w.handle = fmt.Sprintf("writer%d", i)
		volumes = append(volumes, p.volume(w).publish())
	}
	for round := range 3 {
		for i, v := range volumes {
			path := fmt.Sprintf("own%d/%d", i, round)
			v.write(path, "1")
			want[path] = "1"
			check(t, os.Chmod(filepath.Join(v.tree(), path), 0o600))
		}
		time.Sleep(time.Duration(round) * quiesce / 2) // They meet at other moments.
	}
	arrives(t, upstream, "main", want)
	for _, v := range volumes {
		v.stop()
	}
	for i, v := range volumes {
		check(t, v.Publish(t.Context()))
		v.has(want)
		v.faultsAre()
		for path := range want {
			info, err := os.Stat(filepath.Join(v.tree(), path))
			check(t, err)
			if path != "a" && info.Mode().Perm() != 0o600 {
				t.Errorf("%s is %o with writer %d", path, info.Mode().Perm(), i)
			}
		}
		v.stop()
		v.p.end()
	}
	for ref := range upstream.Refs() {
		if strings.HasPrefix(ref, "refs/heads/main.") {
			t.Errorf("there is a side branch %s", ref)
		}
	}
}
