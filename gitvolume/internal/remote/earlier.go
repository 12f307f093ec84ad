package remote

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// earlierTime bounds the wait for an earlier driver's processes to end. One that hangs in
// a disk may outlast it; then this driver must not touch what that one writes.
const earlierTime = 30 * time.Second

// endEarlier ends what an earlier driver with the same directory has left running. When
// it was killed the kernel ended only its own children, and theirs, such as
// git-remote-https and pack-objects, went on with nobody to watch them. They write the
// repositories that this driver is about to recover.
func (c *Command) endEarlier() error {
	deadline := time.Now().Add(earlierTime)
	// One that forks while it is looked for can hide its child from a single look.
	for clean := 0; clean < 2; {
		left := c.earlier()
		if len(left) == 0 {
			clean++
			continue
		}
		clean = 0
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of an earlier driver do not end: %v", left)
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

// earlier are the living processes of runs in the directory, of which this process has
// begun none yet. The dead that nobody has waited for have no environment.
func (c *Command) earlier() []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		content, _ := os.ReadFile(file)
		entries := append([]byte{0}, content...)
		if bytes.Contains(entries, []byte("\x00HOME="+c.home+"\x00")) && bytes.Contains(entries, []byte("\x00"+runVariable+"=")) {
			found = append(found, pid)
		}
	}
	return found
}
