package gittest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// endTree kills a process and all below it: sshd gives each session a process group
// of its own, so that a signal to the server's group would leave them running.
func endTree(pid int) {
	// What is stopped cannot start another child while its children are looked for.
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for _, child := range childrenOf(pid) {
		endTree(child)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// endMarked kills the processes that have the variable in their environment: what a
// session ran is no longer below sshd once its client has gone.
func endMarked(variable string) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		content, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, content...), []byte("\x00"+variable+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// childrenOf returns the processes whose parent is pid now.
func childrenOf(pid int) []int {
	var children []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name, which may hold anything) state parent ...
		fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			children = append(children, child)
		}
	}
	return children
}
