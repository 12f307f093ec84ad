package watch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkIdle watches 100,000 files in 1,000 directories, and reports what that
// adds to the process's memory, what it costs while nothing happens, and what a check
// and setting up all watches anew cost.
func BenchmarkIdle(b *testing.B) {
	root := b.TempDir()
	for i := range 1000 {
		dir := filepath.Join(root, "some-directory-"+strconv.Itoa(i/50), "directory-"+strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(dir, "file-"+strconv.Itoa(j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	dirs := map[string]Inode{}
	walk(root, ".", func(path string, now entry) {
		if now.isDir() {
			dirs[path] = now.inode
		}
	})
	before := anonymous(b)
	w, err := New().Start(root)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	all := func(yield func(string, Inode) bool) {
		for path, inode := range dirs {
			if !yield(path, inode) {
				return
			}
		}
	}
	if missing := w.Check(w.Take(), all); missing != 0 {
		b.Fatalf("%d watches are missing", missing)
	}
	memory := anonymous(b) - before

	processor := spent(b)
	time.Sleep(2 * time.Second) // What is measured is that nothing happens.
	idle := spent(b) - processor

	start := time.Now()
	w.renew()
	renewal := time.Since(start)
	for b.Loop() {
		h := w.TakeAll()
		if missing := w.Check(h, all); missing != 0 {
			b.Fatalf("%d watches are missing", missing)
		}
	}
	b.ReportMetric(float64(memory)/(1<<20), "MiB")
	b.ReportMetric(float64(idle)/float64(2*time.Second)*100, "%idle")
	b.ReportMetric(float64(renewal)/float64(time.Millisecond), "ms/renewal")
}

// anonymous is the process's memory that is no file's, in bytes.
func anonymous(b *testing.B) int {
	b.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("RssAnon:"))
	var kib int
	if _, err := fmt.Sscanf(string(rest), "%d kB", &kib); err != nil {
		b.Fatal(err)
	}
	return kib << 10
}

func spent(b *testing.B) time.Duration {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
