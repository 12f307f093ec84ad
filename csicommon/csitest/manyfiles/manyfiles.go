// Package manyfiles writes what a pod may write that means to be a burden: more files than
// anybody should have to look at, half of them in one directory; and a tree that is too deep
// to be named.
//
// It must never decide whether a driver bore it well.
package manyfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// countVariable is for who wants more files than there is time for in every run.
const countVariable = "LIKEN_TEST_FILES"

// Count is how many files a test is to write.
func Count(t testing.TB) int {
	t.Helper()
	text := os.Getenv(countVariable)
	if text == "" {
		return 10_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 {
		t.Fatalf("%s=%s is no number of files", countVariable, text)
	}
	return n
}

// Calmly has another pod do its work, again and again, until so many files are done with. It
// says how long that took and the slowest of the other pod's works, and ends a test in which
// it takes too long.
func Calmly(t testing.TB, what string, count int, isDone func() bool, work func(n int)) {
	t.Helper()
	patience := 2*time.Minute + time.Duration(count)*3*time.Millisecond
	began, slowest, works := time.Now(), time.Duration(0), 0
	for ; !isDone(); works++ {
		if time.Since(began) > patience {
			t.Fatalf("waited in vain for %s of %d files", what, count)
		}
		start := time.Now()
		work(works)
		slowest = max(slowest, time.Since(start))
	}
	t.Logf("%s of %d files took %v; another pod did its work %d times meanwhile, each within %v",
		what, count, time.Since(began).Round(time.Millisecond), works, slowest.Round(time.Millisecond))
}

// Write writes so many files with a line each.
func Write(root string, count int) error {
	const inEach = 100
	for i := range count {
		path := fmt.Sprintf("one/file-%d", i)
		if i%2 == 1 {
			path = fmt.Sprintf("many/%d/%d/file-%d", i/inEach/inEach, i/inEach, i)
		}
		path = filepath.Join(root, path)
		if i%inEach < 2 {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(path, fmt.Appendln(nil, i), 0o644); err != nil { //nolint:gosec // As a pod does.
			return err
		}
	}
	return nil
}

// deep is how long the path of Deep is, in bytes: longer than a line or a string that
// programs have room for.
const deep = 128 << 10

// Deep makes directories in dir, one in the other, and returns a handle of the last, for
// which no path is short enough.
func Deep(t testing.TB, dir string) *os.File {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	name := strings.Repeat(" ", unix.NAME_MAX) // Blanks are four bytes where they are escaped.
	for range deep / len(name) {
		if err != nil {
			break
		}
		next := -1
		if err = unix.Mkdirat(at, name, 0o700); err == nil {
			next, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		_ = unix.Close(at)
		at = next
	}
	if err != nil {
		t.Fatal(err)
	}
	bottom := os.NewFile(uintptr(at), dir)
	t.Cleanup(func() { _ = bottom.Close() })
	return bottom
}
