package nodevolume_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

// breakages are what a disk does to the repository at dir.
func breakages() map[string]func(t *testing.T, dir string) {
	return map[string]func(t *testing.T, dir string){
		"all objects gone": func(t *testing.T, dir string) {
			check(t, os.RemoveAll(filepath.Join(dir, "objects")))
			check(t, os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700))
		},
		"packs of zeros": func(t *testing.T, dir string) {
			eachObject(t, dir, func(path string, size int64) {
				check(t, os.Chmod(path, 0o600))
				check(t, os.WriteFile(path, make([]byte, size), 0o600))
			})
		},
		"objects cut short": func(t *testing.T, dir string) {
			eachObject(t, dir, func(path string, size int64) {
				check(t, os.Chmod(path, 0o600))
				check(t, os.Truncate(path, size/2))
			})
		},
		"no repository": func(t *testing.T, dir string) { check(t, os.RemoveAll(dir)) },
	}
}

func eachObject(t *testing.T, dir string, do func(path string, size int64)) {
	t.Helper()
	check(t, filepath.WalkDir(filepath.Join(dir, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		do(path, info.Size())
		return err
	}))
}

// repositories are the directories of the store's repositories.
func (p *process) repositories() []string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.store.Dir(), "repos", "*"))
	check(p.t, err)
	return found
}

// A repository that breaks while the volume runs is set aside and fetched again; the tree
// stays, and what the remote has not of it is committed again.
func TestRepositoryBreaks(t *testing.T) {
	for name, damage := range breakages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := gittest.NewBare(t)
			put(t, upstream, "main", files{"a": "1", "d/b": "1"})
			p := newProcess(t, newDir(t))
			v := p.volume(wants(upstream.Dir)).publish()
			v.write("c", "1")
			arrives(t, upstream, "main", files{"a": "1", "d/b": "1", "c": "1"})

			// What is committed and not pushed breaks with it, and the remote is away first.
			away := upstream.Dir + ".away"
			check(t, os.Rename(upstream.Dir, away))
			v.write("a", "2")
			v.soon(report.PushFailed)
			damage(t, p.repositories()[0])
			v.write("e", "1")
			check(t, os.Rename(away, upstream.Dir))
			v.TakeCredential() // Which has the push tried at once.
			want := files{"a": "2", "d/b": "1", "c": "1", "e": "1"}
			arrives(t, upstream, "main", want)
			v.soon()
			v.has(want)
			v.write("f", "1")
			want["f"] = "1"
			arrives(t, upstream, "main", want)
			v.stop()
			v.faultsAre()
			found, err := filepath.Glob(filepath.Join(p.store.Dir(), "aside", "*", "*", "objects"))
			check(t, err)
			if name != "no repository" && len(found) != 1 {
				t.Errorf("%q was set aside, want the broken repository, once", found)
			}
			p.end()
			upstream.Git("fsck", "--strict")
		})
	}
}

// Of two volumes of one repository one finds it broken; both go on with the new one, and
// neither sets that aside.
func TestSharedRepositoryBreaks(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	put(t, upstream, "other", files{"a": "1"})
	dir := newDir(t)
	p := newProcess(t, dir)
	one := p.volume(wants(upstream.Dir)).publish()
	w := wants(upstream.Dir)
	w.handle, w.ref = "second", "other"
	two := p.volume(w).publish()
	for round := range 2 {
		breakages()["all objects gone"](t, p.repositories()[0])
		one.write("a", strings.Repeat("2", round+1))
		arrives(t, upstream, "main", files{"a": strings.Repeat("2", round+1)})
		two.write("b", strings.Repeat("2", round+1))
		arrives(t, upstream, "other", files{"a": "1", "b": strings.Repeat("2", round+1)})
		one.soon()
		two.soon()
		if round == 0 { // Of one volume at most one is set aside in a while.
			one.stop()
			two.stop()
			p.end()
			p = newProcess(t, dir)
			one, two = p.volume(one.wish).publish(), p.volume(two.wish).publish()
		}
	}
	one.stop()
	two.stop()
	if found, _ := filepath.Glob(filepath.Join(dir, "aside", "*", "*", "objects")); len(found) != 2 {
		t.Errorf("%q was set aside, want one a breakage", found)
	}
	p.end()
}

// A driver that finds the repository broken at its start takes the tree up all the same.
func TestRepositoryBrokenAtStart(t *testing.T) {
	for name, damage := range breakages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream, dir, v := ended(t)
			repository := v.p.repositories()[0]
			damage(t, repository)
			v.write("b", "1")
			p := newProcess(t, dir)
			v = p.volume(v.wish)
			check(t, v.Resume(t.Context()))
			arrives(t, upstream, "main", files{"a": "1", "b": "1"})
			v.soon()
			v.stop()
			p.end()
		})
	}
}
