package worktree

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/watch"
)

// idlingIn makes the test binary watch the tree in that directory, as a driver does that
// was just started, and nothing else.
const idlingIn = "LIKEN_TEST_IDLING_IN"

// idled is what a process says of itself: the memory that it has as resident, and of that
// what is no file's, after its first look and later, and the processor time between.
type idled struct {
	First, Resident, Anonymous int
	Spent, Time                time.Duration
}

// idle watches a tree of which it knows nothing, and then does nothing.
func idle(dir string) {
	told, err := idleIn(dir)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(told)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func idleIn(dir string) (told idled, err error) {
	tree, err := Open(dir)
	if err != nil {
		return told, err
	}
	w, err := watch.New().Start(dir)
	if err != nil {
		return told, err
	}
	defer w.Stop()
	h := w.TakeAll()
	result, err := tree.Scan(context.Background(), Request{
		Subtrees: []string{"."}, Blobs: Hasher{}, Fresh: metadata.Plain(), Root: metadata.Seen{Kind: metadata.Directory},
	})
	if err != nil {
		return told, err
	}
	memory, bulky := result.Memory, result.Bulky()
	missing := w.Check(h, func(yield func(string, watch.Inode) bool) {
		for path, inode := range memory.Directories(".") {
			if !yield(path, watch.Inode{Device: tree.Identity().Device, Number: inode}) {
				return
			}
		}
	})
	if state := w.State(); missing != 0 || state.Degraded {
		return told, fmt.Errorf("%d watches are missing: %+v", missing, state)
	}
	if told.First, _, err = resident(); err != nil {
		return told, err
	}
	if bulky {
		debug.FreeOSMemory()
	}
	// What is measured is that nothing happens; until then, what the scan left settles.
	time.Sleep(time.Second)
	before, start := spent(), time.Now()
	time.Sleep(5 * time.Second)
	told.Spent, told.Time = spent()-before, time.Since(start)
	told.Resident, told.Anonymous, err = resident()
	if memory.Tracked() == 0 {
		return told, fmt.Errorf("the tree is empty")
	}
	return told, err
}

// resident is the process's memory in KiB, and what of it is no file's.
func resident() (all, anonymous int, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &all)
		_, _ = fmt.Sscanf(line, "RssAnon: %d kB", &anonymous)
	}
	return all, anonymous, nil
}

func spent() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// idle has a process of its own watch the tree, and reports what it takes.
func (v *volume) idle(b *testing.B) {
	b.Helper()
	child := exec.CommandContext(b.Context(), "/proc/self/exe")
	child.Env = append(os.Environ(), idlingIn+"="+v.dir)
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		b.Fatal(err)
	}
	var told idled
	if err := json.Unmarshal(out, &told); err != nil {
		b.Fatal(err)
	}
	if told.Resident > 40<<10 {
		b.Errorf("%d KiB are resident", told.Resident)
	}
	b.ReportMetric(float64(told.First)/1024, "MiB/scanned")
	b.ReportMetric(float64(told.Resident)/1024, "MiB/idle")
	b.ReportMetric(float64(told.Anonymous)/1024, "MiB/anonymous")
	b.ReportMetric(float64(told.Spent)/float64(told.Time)*100, "%processor")
}
