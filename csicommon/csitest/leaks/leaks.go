// Package leaks finds what a program leaves behind: it looks at mounts, processes, open
// descriptors and files at two moments and says what there is more of at the second.
//
// It must never change what it looks at, but for Adopt, nor decide how much memory is too much.
package leaks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/process"
)

// Scope is what is looked at. What is zero is left out.
type Scope struct {
	// Process is the id of the program, whose descriptors and memory count.
	Process int
	// Family is the id of a process whose descendants count as processes, but for Process.
	// With Adopt and the id of the test, those that the program's end left alone are among them.
	Family int
	// Namespace is the id of a process in whose mount namespace mounts count.
	Namespace int
	// Below leaves out mounts that are not at or below it; empty: none are.
	Below string
	// Directories are those whose files count, all below them too. One that is missing has none.
	Directories []string
}

// Snapshot is what there was at a moment: how often each thing, by what it is.
type Snapshot struct {
	// Mounts are by place and source, such as "/target of /store/copies/v".
	Mounts map[string]int
	// Processes are by their arguments.
	Processes map[string]int
	// Descriptors are by the path of a file, or the kind of what is none, such as "socket".
	// Those with a lock (flock(2), fcntl(2)) end with " (locked)".
	Descriptors map[string]int
	// Files are by path.
	Files map[string]int
	// Anonymous is the program's memory in bytes, without that of files.
	Anonymous int64
	// Threads are the program's.
	Threads int
}

// Look takes a snapshot. What ends or vanishes meanwhile is not in it; that the program has
// ended, or that something cannot be read, fails t.
func Look(t testing.TB, s Scope) Snapshot {
	t.Helper()
	var now Snapshot
	var err error
	for _, look := range []struct {
		wanted bool
		do     func() error
	}{
		{s.Namespace != 0, func() error { now.Mounts, err = mounts(s.Namespace, s.Below); return err }},
		{s.Family != 0, func() error { now.Processes, err = descendants(s.Family, s.Process); return err }},
		{s.Process != 0, func() error { now.Descriptors, err = descriptors(s.Process); return err }},
		{s.Process != 0, func() error { now.Anonymous, now.Threads, err = status(s.Process); return err }},
		{true, func() error { now.Files, err = files(s.Directories); return err }},
	} {
		if !look.wanted {
			continue
		}
		if err := look.do(); err != nil {
			t.Fatalf("look for leaks: %v", err)
		}
	}
	return now
}

// Since says what there is more of than in before, a line for each kind of thing, sorted.
// Memory and threads are the caller's to judge.
func (s Snapshot) Since(before Snapshot) []string {
	var more []string
	for _, kind := range []struct {
		name      string
		then, now map[string]int
	}{
		{"mount", before.Mounts, s.Mounts}, {"process", before.Processes, s.Processes},
		{"descriptor", before.Descriptors, s.Descriptors}, {"file", before.Files, s.Files},
	} {
		for what, count := range kind.now {
			if then := kind.then[what]; count > then {
				more = append(more, fmt.Sprintf("%s: %s, %d instead of %d", kind.name, what, count, then))
			}
		}
	}
	slices.Sort(more)
	return more
}

// Await waits until there is no more than in before, and fails t with what stays for
// process.Patience: much of what a program has goes a moment after it was needed.
func Await(t testing.TB, before Snapshot, s Scope) {
	t.Helper()
	var more []string
	for deadline := time.Now().Add(process.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if more = Look(t, s).Since(before); len(more) == 0 {
			return
		}
	}
	t.Errorf("left behind:\n%s", strings.Join(more, "\n"))
}

// files are all that is in the directories.
func files(directories []string) (map[string]int, error) {
	found := make(map[string]int)
	for _, dir := range directories {
		if err := below(dir, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func below(dir string, found map[string]int) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Whatever had it there has taken it away.
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := dir + "/" + entry.Name()
		found[path]++
		if entry.IsDir() {
			if err := below(path, found); err != nil {
				return err
			}
		}
	}
	return nil
}
