package nodevolume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// A volume is published, followed, stopped and published again, by one process and the
// next.
func TestLife(t *testing.T) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	dir := newDir(t)
	p := newProcess(t, dir)
	v := p.volume(wants(upstream.Dir)).publish()
	v.has(files{"a": "1"})
	v.write("b", "1")
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.write("c", "1")
	v.stop()
	arrives(t, upstream, "main", files{"a": "1", "b": "1", "c": "1"})
	if !v.Position().Stopped {
		t.Error("the record does not tell that the stop is finished")
	}
	put(t, upstream, "main", files{"a": "2"})
	check(t, v.Publish(t.Context())) // By the same process.
	v.has(files{"a": "2", "b": "1", "c": "1"})
	v.faultsAre()
	v.stop()
	p.end()

	p = newProcess(t, dir)
	put(t, upstream, "main", files{"a": "3"})
	v = p.volume(wants(upstream.Dir)).publish()
	v.has(files{"a": "3", "b": "1", "c": "1"})
	v.stop()
	check(t, v.Stop(t.Context(), 0)) // Once more.
	v.faultsAre()
	p.end()
	upstream.Git("fsck", "--strict")
}

// A kept tree is never made one of another repository or branch.
func TestNeverPointedElsewhere(t *testing.T) {
	upstream, other := gittest.NewBare(t), gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	dir := newDir(t)
	p := newProcess(t, dir)
	p.volume(wants(upstream.Dir)).publish().stop()
	for name, w := range map[string]wish{
		"another URL": {handle: "notes", url: other.Dir, ref: "main"},
		"another ref": {handle: "notes", url: upstream.Dir, ref: "other"},
	} {
		_, err := p.tryVolume(w)
		if !errors.Is(err, nodevolume.ErrRefused) {
			t.Fatalf("%s: the error is %v, want ErrRefused", name, err)
		}
		for _, part := range []string{upstream.Dir, "main", w.url, w.ref} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not name %s", name, err, part)
			}
		}
	}
	p.end()
}

// What is in the place of a tree and is not it is set aside, and never committed.
func TestReplacedTree(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, v *volume){
		"another directory": func(t *testing.T, v *volume) {
			check(t, os.Rename(v.tree(), v.tree()+".old"))
			check(t, os.Mkdir(v.tree(), 0o755))
			v.write("stranger", "1")
		},
		"nothing": func(t *testing.T, v *volume) { check(t, os.RemoveAll(v.tree())) },
		"no record": func(t *testing.T, v *volume) {
			check(t, os.WriteFile(filepath.Join(filepath.Dir(v.tree()), "record.json"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream, dir, v := ended(t)
			replace(t, v)
			p := newProcess(t, dir)
			v = p.volume(wants(upstream.Dir)).publish()
			v.has(files{"a": "1"})
			v.soon(report.SetAside)
			v.write("b", "1")
			arrives(t, upstream, "main", files{"a": "1", "b": "1"})
			v.stop()
			p.end()
			found, err := filepath.Glob(filepath.Join(dir, "aside", "*", "tree", "*"))
			check(t, err)
			if name != "nothing" && len(found) != 1 {
				t.Errorf("%q was set aside, want what was in the tree", found)
			}
		})
	}
}

// A new tree is made only where there is room for it and it stays; a kept one is used.
func TestNewTreeRefused(t *testing.T) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	dir := newDir(t)
	p := newProcess(t, dir)
	w := wants(upstream.Dir)
	w.volatile = "it is on a tmpfs"
	wantError(t, p.volume(w).Publish(t.Context()), nodevolume.ErrVolatile)
	w.volatile = ""
	p.volume(w).publish().stop()
	p.end()

	p = newProcess(t, dir)
	check(t, p.store.Close())
	var err error
	p.store, err = store.Open(store.Settings{Dir: dir, Log: p.log, MinFree: store.Free{Bytes: 1 << 62}})
	check(t, err)
	w.volatile = "it is on a tmpfs"
	v := p.volume(w).publish()
	v.write("b", "1")
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.stop()
	w.handle, w.volatile = "another", ""
	wantError(t, p.volume(w).Publish(t.Context()), store.ErrFull)
	p.end()
}

// The class and the credential are taken while the volume is busy.
func TestNeverWaits(t *testing.T) {
	silent := gittest.Silent(t)
	dir := newDir(t)
	p := newProcess(t, dir)
	w := wants("git://" + silent.Address + "/r.git")
	v := p.volume(w)
	published := make(chan error, 1)
	go func() { published <- v.Publish(t.Context()) }()
	within(t, 2*time.Minute, func() bool { return silent.Accepted() > 0 }, func() string { return "nothing is fetched" })
	told := make(chan struct{})
	go func() {
		defer close(told)
		check(t, v.Arm(armed()))
		v.TakeCredential()
	}()
	select {
	case <-told:
	case err := <-published:
		t.Fatalf("the publish ended: %v", err)
	case <-time.After(10 * time.Second):
		t.Error("a class waits for a fetch")
	}
	p.fetches.Close()
	if err := <-published; err == nil {
		t.Error("a tree was made of nothing")
	}
	check(t, p.store.Close())
}
