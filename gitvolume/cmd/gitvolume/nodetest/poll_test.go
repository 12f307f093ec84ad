package nodetest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/gitvolume/internal/gittest"
)

// countingGit has the plugins that are started from now on run a git that first adds a line
// to the file, which it returns.
func (n *node) countingGit() (runs string) {
	n.T.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		n.T.Fatal(err)
	}
	n.path = n.T.TempDir()
	runs = filepath.Join(n.path, "runs")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >>'%s'\nexec '%s' \"$@\"\n", runs, git)
	if err := os.WriteFile(filepath.Join(n.path, "git"), []byte(script), 0o755); err != nil {
		n.T.Fatal(err)
	}
	return runs
}

// files are the names, times and sizes of all in the store.
func (n *node) files() string {
	n.T.Helper()
	text := ""
	err := filepath.WalkDir(n.Store, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			text += fmt.Sprintln(path, info.ModTime().UnixNano(), info.Size())
		}
		return err
	})
	if err != nil {
		n.T.Fatal(err)
	}
	return text
}

// A poll that finds nothing new is one git, for all volumes of the repository, and writes
// nothing; what is new is one more.
func TestAnIdlePollIsOneProcess(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	forge := gittest.StartHTTP(t, filepath.Dir(n.remote.Dir), gittest.HTTPOptions{})
	runs := n.countingGit()
	n.Start()
	var targets []string
	for i := range 10 {
		targets = append(targets, n.MustPublish(n.volume(fmt.Sprintf("v%d", i), "url", forge.URL("/"+filepath.Base(n.remote.Dir))), i))
	}
	ran := func(words string) int {
		said, err := os.ReadFile(runs)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(said), words)
	}
	asked := func() (times int) {
		for _, r := range forge.Requests() {
			if strings.HasSuffix(r.URL.Path, "/info/refs") { // The first request of each run.
				times++
			}
		}
		return times
	}
	polls := func() {
		before := asked()
		process.Await(t, "polls", func() bool { return asked() >= before+3 })
	}
	polls() // The last of the clones may still be at it.
	before, gits, fetches := n.files(), ran("\n"), ran("fetch ")
	answered := asked()
	polls()
	// A run is counted before it asks: one may be under way.
	if more, now := ran("\n")-gits, asked()-answered; more > now+1 || ran("fetch ") > fetches {
		t.Errorf("%d runs of git for %d polls, %d fetches", more, now, ran("fetch ")-fetches)
	}
	if after := n.files(); after != before {
		t.Errorf("a poll that finds nothing new writes:\n%s\nwas\n%s", after, before)
	}
	n.remote.Grow("main", "a", "2")
	for _, target := range targets {
		shows(t, target, "a", "2")
	}
	if more := ran("fetch ") - fetches; more != 1 {
		t.Errorf("%d fetches of what is new, want one for all", more)
	}
	if stores, err := filepath.Glob(filepath.Join(n.Store, "repos", "*")); err != nil || len(stores) != 1 {
		t.Errorf("the object stores are %q, %v", stores, err)
	}
}
