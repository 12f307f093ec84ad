package watch

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepFromChildren marks notify's epoll instance and pipe as not inherited, which
// notify does for the inotify instance alone: a child that writes to the pipe would
// end every watch of this process.
func keepFromChildren() {
	inotify := descriptors(inotifyLink)
	for _, epoll := range descriptors("anon_inode:[eventpoll]") {
		targets := epollTargets(epoll)
		if !slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(inotify, t) }) {
			continue
		}
		closeOnExec(epoll)
		for _, target := range targets {
			link, err := os.Readlink(filepath.Join(fdDirectory, target))
			if err != nil || len(link) < 5 || link[:5] != "pipe:" {
				continue
			}
			for _, end := range descriptors(link) {
				closeOnExec(end)
			}
		}
	}
}

// epollTargets lists the descriptors that an epoll instance waits for, from lines
// such as "tfd:        5 events:       19 data: ...".
func epollTargets(epoll string) []string {
	var targets []string
	_ = eachLine(filepath.Join(fdinfoDirectory, epoll), func(line []byte) {
		fields := bytes.Fields(line)
		if len(fields) > 1 && string(fields[0]) == "tfd:" {
			targets = append(targets, string(fields[1]))
		}
	})
	return targets
}

func closeOnExec(descriptor string) {
	if fd, err := strconv.Atoi(descriptor); err == nil {
		unix.CloseOnExec(fd)
	}
}
