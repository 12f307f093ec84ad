package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"liken.sh/gitvolume/internal/history"
)

// git stands for the command, and fails or removes a file.
type git struct{ err error }

func (g git) Recover(_ context.Context, dir string) error {
	if g.err != nil {
		return g.err
	}
	err := os.Remove(filepath.Join(dir, "shallow.lock"))
	if os.IsNotExist(err) {
		err = nil
	}
	return err
}

// TestRecover is C43 (b), the store's part: what a kill or a power cut leaves.
func TestRecover(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a lock of the index":   func(dir string) error { return os.WriteFile(dir+"/index.lock", nil, 0o600) },
		"a lock of shallow":     func(dir string) error { return os.WriteFile(dir+"/shallow.lock", nil, 0o600) },
		"a lock of HEAD":        func(dir string) error { return os.WriteFile(dir+"/HEAD.lock", nil, 0o600) },
		"a lock of packed refs": func(dir string) error { return os.WriteFile(dir+"/packed-refs.lock", nil, 0o600) },
		"a lock of a ref": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, VolumeRef("v", AnchorTip)+".lock"), nil, 0o600)
		},
		"an empty HEAD":   func(dir string) error { return os.Truncate(dir+"/HEAD", 0) },
		"an empty config": func(dir string) error { return os.Truncate(dir+"/config", 0) },
		"no config":       func(dir string) error { return os.Remove(dir + "/config") },
		"an empty index of a pack": func(dir string) error {
			found, err := filepath.Glob(dir + "/objects/pack/*.idx")
			return errors.Join(err, os.Chmod(found[0], 0o600), os.Truncate(found[0], 0))
		},
		"a directory that was about to be made one": func(dir string) error {
			return errors.Join(os.RemoveAll(dir+"/refs"), os.Remove(dir+"/HEAD"), os.Remove(dir+"/"+aboutFile))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.volume("v")
			r := f.repository(aURL)
			commit := f.commit(r, VolumeRef("v", AnchorTip))
			f.must(spoil(r.Dir()))
			f.restart()
			f.must(f.store.Recover(t.Context(), git{}))
			repository, err := history.Open(r.Dir())
			f.must(err)
			defer repository.Close()
			if _, err := repository.Describe(commit); err != nil {
				t.Errorf("the commit: %v", err)
			}
			found, _ := repository.Ref(VolumeRef("v", AnchorTip))
			if err := repository.SetRef(VolumeRef("v", AnchorTip), commit, found); err != nil {
				t.Errorf("the ref cannot be set: %v", err)
			}
			if f.glob(asideDir+"/*") != 0 {
				t.Error("it was set aside")
			}
		})
	}
}

func TestARepositoryThatCannotBeRepairedIsSetAside(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a file in its place": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"a file for its objects": func(dir string) error {
			return errors.Join(os.RemoveAll(dir+"/objects"), os.WriteFile(dir+"/objects", nil, 0o600))
		},
		"a directory for its HEAD": func(dir string) error { return errors.Join(os.Remove(dir+"/HEAD"), os.Mkdir(dir+"/HEAD", 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r, other := f.repository(aURL), f.repository(otherURL)
			f.commit(r)
			f.commit(other, RemoteRef("refs/heads/main"))
			f.must(spoil(r.Dir()))
			f.restart()
			f.must(f.store.Recover(t.Context(), git{}))
			if f.glob(asideDir+"/*/"+r.name) != 1 || f.glob(asideDir+"/*") != 1 {
				t.Error("it is not what was set aside")
			}
			f.commit(f.repository(aURL))
			if len(f.refs(other)) != 1 {
				t.Error("the other one lost its ref")
			}
		})
	}
}

// A disk that is full, or a process without handles, says nothing about a repository.
func TestATroubleOfTheMachineSetsNothingAside(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	f.commit(r)
	f.must(errors.Join(os.Remove(r.Dir()+"/HEAD"), os.Mkdir(r.Dir()+"/HEAD", 0o700)))
	err := f.store.Recover(t.Context(), git{err: &os.PathError{Op: "open", Err: syscall.ENOSPC}})
	if !errors.Is(err, syscall.ENOSPC) || f.glob(asideDir+"/*") != 0 {
		t.Errorf("%v, and %d set aside", err, f.glob(asideDir+"/*"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.wants(f.store.Recover(ctx, git{err: ctx.Err()}), context.Canceled)
	if f.glob(asideDir+"/*") != 0 {
		t.Error("it was set aside")
	}
}
