package toolset

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// meter shows how far a build is: the compiler names each package it turns to, and
// how many there are can be asked beforehand.
type meter struct {
	set   string
	say   func(line string)
	total int
}

// every is how often a line is said: a build takes up to a quarter of an hour, and
// its lines go to logs as well as to terminals.
const every = 15 * time.Second

func (m *meter) count(list *exec.Cmd, set Set) error {
	m.say(m.set + ": downloading what it is built from")
	for _, pkg := range set.Packages {
		list.Args = append(list.Args, pkg)
	}
	var failure bytes.Buffer
	list.Stderr = &failure
	output, err := list.Output()
	if err != nil {
		return fmt.Errorf("list packages: %w: %s", err, lastLines(failure.String(), 10))
	}
	m.total = bytes.Count(output, []byte("."))
	return nil
}

// run runs the build. A build that fails names the packages it was at, among what
// went wrong, so the end of what it said is the error.
func (m *meter) run(build *exec.Cmd) error {
	started := time.Now()
	output, err := build.StderrPipe()
	if err != nil {
		return err
	}
	if err := build.Start(); err != nil {
		return err
	}
	m.say(m.set + ": compiling")
	var said []string
	compiled, last := 0, started
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		said = append(said, lines.Text())
		if isPackage(lines.Text()) {
			compiled++
		}
		if time.Since(last) > every {
			last = time.Now()
			m.say(fmt.Sprintf("%s: %d of at most %d packages, %s", m.set, compiled, m.total, time.Since(started).Round(time.Second)))
		}
	}
	if err := build.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, lastLines(strings.Join(said, "\n"), 15))
	}
	m.say(fmt.Sprintf("%s: built in %s", m.set, time.Since(started).Round(time.Second)))
	return nil
}

// isPackage tells a package's name from a download and a compiler's message, which
// have spaces. The standard library's do not count, as they do not in the total.
func isPackage(line string) bool {
	first, _, _ := strings.Cut(line, "/")
	return !strings.Contains(line, " ") && strings.Contains(first, ".")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
