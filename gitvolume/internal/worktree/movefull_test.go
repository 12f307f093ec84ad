package worktree

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// TestAFullDiskLeavesTheTreeAsItWas is C43 (c), the tree's part.
func TestAFullDiskLeavesTheTreeAsItWas(t *testing.T) {
	mountns.Require(t)
	big := strings.Repeat("x", 400<<10)
	many := upstream{}
	for i := range 60 {
		many["n/"+strconv.Itoa(i)] = "1"
	}
	for _, row := range []struct {
		name, options string
		to            upstream
	}{
		{"no block left", "size=1m", upstream{"f": "2", "d/g": big, "d/h": big + "2", "e/i": big + "3"}},
		{"no block left for a directory of files", "size=1m", upstream{"f": "2", "new/g": big, "new/h": big + "2", "new/i/i": big + "3"}},
		{"no inode left", "nr_inodes=40", many},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := newVolume(t)
			v.do(unix.Mount("none", v.dir, "tmpfs", 0, row.options))
			t.Cleanup(func() { v.do(unix.Unmount(v.dir, unix.MNT_DETACH)) })
			v.tree = openTree(t, v.dir)
			from := upstream{"f": "1", "d/g": "1", "d/h": "1", "e/i": "1"}
			v.start(from)
			write(t, v.at("mine"), "mine")
			before := v.onDisk()
			store := &intents{}
			to := v.treeOf(row.to)
			_, err := v.mover(store).Move(t.Context(), v.root, to)
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("moved, error %v", err)
			}
			if after := v.onDisk(); !maps.Equal(before, after) {
				t.Errorf("the tree was changed to %q", after)
			}
			if store.held.Token != "" || store.holds != v.root || store.stored != 1 {
				t.Errorf("the intent is %+v", store)
			}
			// Once there is room, what could not be done is done.
			v.do(unix.Mount("none", v.dir, "tmpfs", unix.MS_REMOUNT, "size=20m,nr_inodes=1000"))
			v.move(to)
			want := maps.Clone(row.to)
			want["mine"] = "mine"
			v.holds(want)
		})
	}
}

// TestResumeOnAFullDisk has the disk fill up while the tree is between two commits.
func TestResumeOnAFullDisk(t *testing.T) {
	mountns.Require(t)
	big := strings.Repeat("x", 300<<10)
	v := newVolume(t)
	v.do(unix.Mount("none", v.dir, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { v.do(unix.Unmount(v.dir, unix.MNT_DETACH)) })
	v.tree = openTree(t, v.dir)
	v.start(upstream{"a": "1", "b": "1"})
	i := &interrupted{volume: v, change: change{path: "b"}, store: &intents{}, to: v.treeOf(upstream{"a": big, "b": big + "2"})}
	i.crash("put")
	// The application takes what the unfinished file, which is made anew, gives free.
	write(t, v.at("mine"), strings.Repeat("y", 200<<10))
	for name := range v.onDisk() {
		if strings.Contains(name, ownPrefix) {
			v.do(os.Remove(v.at(name)))
		}
	}
	write(t, v.at("more"), strings.Repeat("y", 250<<10))
	_, err := v.mover(i.store).Resume(t.Context(), i.store.held)
	if !errors.Is(err, unix.ENOSPC) || i.store.held.Token == "" {
		t.Fatalf("error %v, the intent is %+v", err, i.store)
	}
	if got := must(os.ReadFile(v.at("b"))); string(got) != "1" {
		t.Errorf("half-written: %d bytes", len(got))
	}
	v.do(os.Remove(v.at("more")))
	moved, err := v.mover(i.store).Resume(t.Context(), i.store.held)
	v.do(err)
	if len(moved.Late) > 0 || i.store.held.Token != "" {
		t.Errorf("late %q, the intent is %+v", moved.Late, i.store)
	}
	v.do(os.Remove(v.at("mine")))
	v.holds(upstream{"a": big, "b": big + "2"})
}

// TestMoveTakesADamagedCommitForWhatItIs has a blob that is not there.
func TestMoveTakesADamagedCommitForWhatItIs(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"a": "1"})
	to := v.treeOf(upstream{"a": "2", "b": "is missing"})
	if err := v.loseObjects(); err != nil {
		t.Skip(err)
	}
	store := &intents{}
	if _, err := v.mover(store).Move(t.Context(), v.root, to); err == nil || store.held.Token != "" {
		t.Errorf("error %v, the intent is %+v", err, store)
	}
	v.holds(upstream{"a": "1"})
}

// loseObjects cuts the newest pack short.
func (v *volume) loseObjects() error {
	packs, err := filepath.Glob(v.store + "/objects/pack/*.pack")
	if err != nil || len(packs) == 0 {
		return errors.New("there is no pack")
	}
	var newest string
	for _, pack := range packs {
		if newest == "" || must(os.Stat(pack)).ModTime().After(must(os.Stat(newest)).ModTime()) {
			newest = pack
		}
	}
	return errors.Join(os.Chmod(newest, 0o600), os.WriteFile(newest, make([]byte, must(os.Stat(newest)).Size()), 0o600))
}
