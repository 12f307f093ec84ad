package remote

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// reapTime bounds the wait for killed processes: one that hangs in a disk ends only when
// the disk answers, and is left to be found by whoever looks at the machine.
const reapTime = 5 * time.Second

// endStrays kills those that left the group, and then what they leave in turn. The
// leader is not yet waited for, and is nobody's to take.
func (p *process) endStrays(leader int) {
	for deadline := time.Now().Add(reapTime); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		left := slices.DeleteFunc(p.strays(), func(pid int) bool { return pid == leader })
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
			reapOne(unix.P_PID, pid)
		}
	}
}

// reap waits for the members of the killed group, which are this process's children
// once their parents are gone. Without it they would stay as zombies for good where
// this process is a container's first.
func (p *process) reap(group int) {
	deadline := time.Now().Add(reapTime)
	for pause := time.Millisecond; time.Now().Before(deadline) && !reapOne(unix.P_PGID, group); pause = min(2*pause, 50*time.Millisecond) {
		time.Sleep(pause)
	}
	p.endStrays(0)
}

// reapOne takes the status of one that has ended; true when there is nobody to wait for.
func reapOne(kind, id int) bool {
	err := unix.Waitid(kind, id, nil, unix.WEXITED|unix.WNOHANG, nil)
	return errors.Is(err, unix.ECHILD)
}

// strays are children of this process, of none of whose own children it can be, that
// bear the run's mark.
func (p *process) strays() []int {
	var strays []int
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		content, _ := os.ReadFile(list)
		for _, field := range bytes.Fields(content) {
			pid, err := strconv.Atoi(string(field))
			if err != nil {
				continue
			}
			environment, _ := os.ReadFile("/proc/" + string(field) + "/environ")
			if bytes.Contains(environment, []byte(p.mark+"\x00")) {
				strays = append(strays, pid)
			}
		}
	}
	return strays
}
