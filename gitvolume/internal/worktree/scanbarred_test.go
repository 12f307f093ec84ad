package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
)

// node is a tree of git as git itself would not make it, by names; a leaf has content.
type node map[string]any

func (v *volume) plant(n node) object.ID {
	v.t.Helper()
	var lines strings.Builder
	for name, what := range n {
		switch what := what.(type) {
		case node:
			fmt.Fprintf(&lines, "040000 tree %s\t%s\x00", v.plant(what), name)
		case string:
			fmt.Fprintf(&lines, "100644 blob %s\t%s\x00", v.feed(what, "hash-object", "-w", "--stdin")[:40], name)
		}
	}
	id, err := object.Parse(v.feed(lines.String(), "mktree", "-z")[:40])
	v.do(err)
	return id
}

// TestNamesThatUpstreamHasAndGitCannotHold is C28 the other way round: they are in the
// commit, and the application may make them too. Nothing but the rest is committed.
func TestNamesThatUpstreamHasAndGitCannotHold(t *testing.T) {
	made := map[string]func(v *volume, path string){
		"nothing": func(*volume, string) {},
		"a file":  func(v *volume, path string) { v.write(path, "mine") },
		"a directory": func(v *volume, path string) {
			v.write(path+"/x", "mine")
			v.write(path+"/y", "mine")
		},
		"a link": func(v *volume, path string) {
			mkdirs(v.t, filepath.Dir(v.at(path)))
			symlinkTo(v.t, "ok", v.at(path))
		},
		"a FIFO": func(v *volume, path string) {
			mkdirs(v.t, filepath.Dir(v.at(path)))
			v.do(unix.Mkfifo(v.at(path), 0o644))
		},
	}
	barred := []string{".GIT", "git~1", "sub/.Git", "sub/GIT~1", "only/a/.git "}
	upstream := node{
		".GIT": node{"x": "theirs"}, "git~1": "theirs", "ok": "1", strings.Repeat("n", 256): "theirs",
		"sub":  node{".Git": node{"x": "theirs"}, "GIT~1": "theirs", "ok": "1"},
		"only": node{"a": node{".git ": node{"x": "theirs"}}},
	}
	for name, make := range made {
		for _, rules := range []string{"", "*\n!/new\n"} {
			t.Run(fmt.Sprintf("%s, ignored %q", name, rules), func(t *testing.T) {
				v := newVolume(t)
				v.root = v.plant(upstream)
				v.memory = v.memory.With(slices.Collect(func(yield func(Edit) bool) {
					for _, d := range must(v.repo.Diff(object.ID{}, v.root)) {
						if !yield(Edit{d.Path, Entry{Mode: d.To.Mode, Blob: d.To.ID}}) {
							return
						}
					}
				}))
				before := v.names()
				// What a move writes of it.
				v.write("ok", "1")
				v.write("sub/ok", "1")
				v.wantsChanges(v.commit())
				want := map[string]Reason{}
				for _, path := range barred {
					make(v, path)
					if name != "nothing" {
						want[path] = Name
					}
				}
				if rules != "" {
					v.write(".gitignore", rules)
				}
				v.write("new", "x")
				result := v.commit()
				v.wantsSkips(result, want)
				v.wantsChanges(result, "new")
				v.rests(before)
				for _, path := range barred {
					v.do(os.RemoveAll(v.at(path)))
				}
				v.rests(before)
				v.do(os.RemoveAll(v.at("sub")))
				v.wantsChanges(v.commit(), "-sub/ok")
				for _, path := range before {
					if !strings.HasSuffix(path, "ok") && !slices.Contains(v.names(), path) {
						t.Errorf("%q was deleted", path)
					}
				}
			})
		}
	}
}

// rests fails unless upstream's paths are committed, and three looks find no more.
func (v *volume) rests(upstream []string) {
	v.t.Helper()
	v.commit()
	v.wants(append([]string{"new"}, upstream...)...)
	for range 2 {
		result := v.commit()
		v.wantsChanges(result)
		v.wantsSkips(result, nil)
		if len(result.Found)+len(result.Metadata) != 0 {
			v.t.Errorf("found %q, recorded %v", result.Found, result.Metadata)
		}
	}
}

// TestWhatCannotBeEnteredIsFoundOnce has a scan be the first to see it, and not the next.
func TestWhatCannotBeEnteredIsFoundOnce(t *testing.T) {
	v := newVolume(t)
	v.write("d/.git/HEAD", "x")
	v.write(".gitmodules", "x")
	v.commit()
	v.do(os.Remove(v.at(".gitmodules")))
	mkdirs(t, v.at(".gitmodules"))
	result := v.commit()
	v.wantsSkips(result, map[string]Reason{".gitmodules": Name})
	v.wants(".gitmodules")
	if !slices.Equal(result.Found, []string{".gitmodules"}) {
		t.Errorf("found %q", result.Found)
	}
	request := v.request()
	request.Seen = v.memory
	for range 2 {
		if result := v.scan(request); len(result.Found) != 0 {
			t.Errorf("found again: %q", result.Found)
		}
	}
	if result := v.commit(); len(result.Found) != 0 {
		t.Errorf("found again: %q", result.Found)
	}
	v.do(os.Remove(v.at(".gitmodules")))
	v.wantsChanges(v.commit(), "-.gitmodules")
}
