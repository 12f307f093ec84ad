package usage

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

func walked(t *testing.T, top string) (Usage, error) {
	t.Helper()
	dir, err := os.Open(top)
	check(t, err)
	defer dir.Close()
	return Walk(t.Context(), dir)
}

func measured(t *testing.T, top string) Usage {
	t.Helper()
	usage, err := walked(t, top)
	check(t, err)
	return usage
}

func measuredWith(t *testing.T, top string, count *count) Usage {
	t.Helper()
	dir, err := os.Open(top)
	check(t, err)
	defer dir.Close()
	root, err := descent.Open(dir)
	check(t, err)
	check(t, descent.Walk(t.Context(), root, count))
	return count.sum()
}

// du asks the tools that have always been asked.
func du(t *testing.T, top string) Usage {
	t.Helper()
	text, _, _ := strings.Cut(run(t, "du", "--block-size=1", "-s", top), "\t")
	size, err := strconv.ParseInt(text, 10, 64)
	check(t, err)
	inodes := map[string]bool{}
	for line := range strings.Lines(run(t, "find", top, "-printf", `%D %i\n`)) {
		inodes[line] = true
	}
	return Usage{Bytes: size, Inodes: int64(len(inodes))}
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, stderr.String())
	}
	return string(out)
}

func chain(t *testing.T, top string, depth int) {
	t.Helper()
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	check(t, err)
	for range depth {
		check(t, unix.Mkdirat(fd, "directory", 0o755))
		next, err := unix.Openat(fd, "directory", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		check(t, err)
		check(t, unix.Close(fd))
		fd = next
	}
	check(t, unix.Close(fd))
}

func write(t testing.TB, path string, size int) {
	t.Helper()
	check(t, os.WriteFile(path, make([]byte, size), 0o644))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
