package remote

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// reapTime bounds the wait for killed processes: one that hangs in a disk ends only when
// the disk answers, and is left to be found by whoever looks at the machine.
const reapTime = 5 * time.Second

// reap waits for the members of the killed group, which are this process's children
// once their parents are gone, and ends those that left the group. Without it they
// would stay as zombies for good where this process is a container's first.
func (p *process) reap(group int) {
	deadline := time.Now().Add(reapTime)
	for pause := time.Millisecond; time.Now().Before(deadline); pause = min(2*pause, 50*time.Millisecond) {
		none := reapOne(unix.P_PGID, group)
		if none {
			left := p.strays()
			if len(left) == 0 {
				return
			}
			for _, pid := range left {
				_ = unix.Kill(pid, unix.SIGKILL)
				reapOne(unix.P_PID, pid)
			}
		}
		time.Sleep(pause)
	}
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
