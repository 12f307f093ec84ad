package nodevolume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/gittest"
)

// TestFewDescriptors is C43 (d): a driver that may open few files commits for as long as
// anybody writes, also while its remote is away.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	dir := newDir(t)
	k := startKilled(t, dir, upstream.Dir)
	<-k.ready
	const most = 128
	check(t, unix.Prlimit(k.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}, nil))
	tree := filepath.Join(dir, "volumes", "notes", "tree")
	record := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "volumes", "notes", "record.json"))
		check(t, err)
		return string(text)
	}
	check(t, os.Rename(upstream.Dir, upstream.Dir+".away"))
	// As many as there may be packs before they are packed anew.
	const commits = 50
	for i := range commits {
		before := record()
		check(t, os.WriteFile(filepath.Join(tree, "a"), []byte(strconv.Itoa(i)), 0o644))
		within(t, patience, func() bool { return record() != before }, func() string { return "it is not committed" })
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", k.cmd.Process.Pid))
		check(t, err)
		if len(open) >= 100 {
			t.Fatalf("%d descriptors are open after %d commits", len(open), i+1)
		}
	}
	check(t, os.Rename(upstream.Dir+".away", upstream.Dir))
	check(t, k.cmd.Process.Signal(syscall.SIGTERM)) // Which has it push.
	if err := k.cmd.Wait(); err != nil {
		t.Errorf("the driver ended with %v: %s", err, k.errors)
	}
	arrives(t, upstream, "main", files{"a": strconv.Itoa(commits - 1)})
	upstream.Git("fsck", "--strict")
}
