package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"liken.sh/csicommon/csitest/process"
)

// The environment of a child that plays one call and is killed at a step.
const (
	killAtVariable = "STORE_TEST_KILL_AT" // Number of the step, from 1.
	callVariable   = "STORE_TEST_CALL"
	dirVariable    = "STORE_TEST_STORE"
)

// calls are what is killed at each of its steps.
var calls = map[string]func(s *Store) error{
	"save": func(s *Store) error { return s.Save(aRecord("v")) },
	"make tree": func(s *Store) error {
		r := aRecord("v")
		err := s.Save(r)
		if err == nil {
			r.Position.Tree, err = s.MakeTree("v", 0o777)
		}
		return errors.Join(err, s.Save(r))
	},
	"save memory":    func(s *Store) error { return s.SaveMemory("v", asOf("2"), aMemory()) },
	"remove":         func(s *Store) error { return s.Remove("v") },
	"set aside tree": func(s *Store) error { _, err := s.SetAsideTree("v", "why"); return err },
	"use": func(s *Store) error {
		release, err := s.Repository(mustURL(aURL), 0).Use(context.Background())
		if err == nil {
			release()
		}
		return err
	},
	"set aside repository": func(s *Store) error {
		r := s.Repository(mustURL(aURL), 0)
		instance, err := r.Instance()
		if err == nil {
			_, err = r.SetAside(context.Background(), instance, "why")
		}
		return err
	},
	"tidy": func(s *Store) error { return s.Tidy(context.Background(), noGC) },
}

// runUntilKilled is the child: it makes the call and kills itself with SIGKILL right
// before the step. It exits 0 when the call has fewer steps than that.
func runUntilKilled() {
	killAt, err := strconv.Atoi(os.Getenv(killAtVariable))
	if err != nil {
		panic(err)
	}
	s := settings(os.Getenv(dirVariable))
	s.Log = slog.New(slog.DiscardHandler)
	step := process.KillAt(killAt)
	s.BeforeStep = func(Step) { step() }
	opened, err := Open(s)
	if err == nil {
		err = calls[os.Getenv(callVariable)](opened)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(0)
}

// killedAt runs the call in a child and reports whether step n was reached.
func (f *fixture) killedAt(call string, n int) bool {
	f.t.Helper()
	f.must(f.store.Close())
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", killAtVariable, n), callVariable+"="+call, dirVariable+"="+f.dir)
	killed := process.WasKilled(f.t, child)
	f.open()
	return killed
}

// killRow is a call that is killed at each of its steps.
type killRow struct {
	call    string
	steps   int
	prepare func(f *fixture)
	check   func(f *fixture) // After the kill.
	after   func(f *fixture) // After the call that is made again.
}

// killRows are those of volumes.
func killRows() []killRow {
	withVolume := func(f *fixture) {
		f.volume("v")
		f.must(f.store.SaveMemory("v", asOf("1"), aMemory()))
	}
	return []killRow{
		{"save", 2, func(*fixture) {}, func(f *fixture) { f.isTidy() }, func(f *fixture) { f.hasRecord() }},
		{"make tree", 4, func(*fixture) {}, func(f *fixture) { f.isTidy() }, func(f *fixture) {
			r, err := f.store.Load("v")
			f.must(err)
			f.must(f.store.CheckTree(r))
		}},
		{"save memory", 1, withVolume, func(f *fixture) {
			f.remembers(asOf("1"))
		}, func(f *fixture) {
			f.remembers(asOf("2"))
		}},
		{"remove", 1, withVolume, func(f *fixture) { f.hasContent(volumesDir + "/v/tree/file") }, func(f *fixture) {
			if f.glob(volumesDir+"/*") != 0 {
				f.t.Error("it is still there")
			}
		}},
		{"set aside tree", 3, withVolume, func(f *fixture) {
			f.hasContent(volumesDir + "/v/tree/file")
			if f.glob(asideDir+"/*") != 0 {
				f.t.Error("an empty wrapper is left")
			}
		}, func(f *fixture) { f.hasContent(asideDir + "/*/tree/file"); f.hasRecord() }},
	}
}

// repositoryKillRows are those of repositories.
func repositoryKillRows() []killRow {
	withRepository := func(f *fixture) { f.commit(f.repository(aURL), VolumeRef("v", AnchorTip)) }
	return []killRow{
		{"use", 2, func(*fixture) {}, func(f *fixture) {
			if found, err := f.store.Repositories(); err != nil || len(found) != 0 {
				f.t.Errorf("repositories %v, %v", found, err)
			}
			f.must(f.store.Recover(f.t.Context(), noGit{}))
		}, func(f *fixture) { withRepository(f) }},
		{"set aside repository", 3, withRepository, func(f *fixture) {
			if len(f.refs(f.repository(aURL))) != 1 {
				f.t.Error("the ref is gone")
			}
		}, func(f *fixture) { withRepository(f) }},
		{"tidy", 3, func(f *fixture) {
			f.must(f.store.Save(aRecord("v")))
			f.commit(f.repository(aURL), VolumeRef("v", AnchorTip), VolumeRef("w", AnchorTip), VolumeRef("x", AnchorTip))
			f.commit(f.repository(otherURL))
		}, func(f *fixture) {
			if !f.refs(f.repository(aURL))[VolumeRef("v", AnchorTip)] {
				f.t.Error("a ref is gone that a record follows")
			}
		}, func(f *fixture) {
			if len(f.refs(f.repository(aURL))) != 1 || f.exists(reposDir, f.repository(otherURL).name) {
				f.t.Error("something is left that nobody needs")
			}
		}},
	}
}

// After a kill at any step the store opens, has lost nothing, and the call made again
// ends as one that was never killed.
func TestKilledAtEveryStep(t *testing.T) {
	for _, row := range append(killRows(), repositoryKillRows()...) {
		t.Run(row.call, func(t *testing.T) {
			for n := 1; ; n++ {
				f := newFixture(t)
				row.prepare(f)
				if !f.killedAt(row.call, n) {
					if n != row.steps+1 {
						t.Errorf("it has %d steps, expected %d", n-1, row.steps)
					}
					row.after(f)
					return
				}
				row.check(f)
				f.must(calls[row.call](f.store))
				row.after(f)
			}
		})
	}
}

// isTidy fails if there is a volume without a record.
func (f *fixture) isTidy() {
	f.t.Helper()
	if volumes, records := f.glob(volumesDir+"/*"), f.glob(volumesDir+"/*/"+recordFile); volumes != records {
		f.t.Errorf("%d volumes and %d records", volumes, records)
	}
}

func (f *fixture) hasRecord() {
	f.t.Helper()
	_, err := f.store.Load("v")
	f.must(err)
}

func (f *fixture) hasContent(pattern string) {
	f.t.Helper()
	found, err := filepath.Glob(filepath.Join(f.dir, pattern))
	f.must(err)
	if len(found) != 1 {
		f.t.Fatalf("%d files are %s", len(found), pattern)
	}
	if text, err := os.ReadFile(found[0]); err != nil || string(text) != "content" {
		f.t.Errorf("%q, %v", text, err)
	}
}
