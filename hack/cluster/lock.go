package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"liken.sh/csicommon/quote"
	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/machine"
)

// lock waits for this command's turn. The kernel releases locks with the process.
func (p *program) lock(command string) (unlock func(), err error) {
	if err := os.MkdirAll(p.cluster.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	// Building images takes long, and hinders nobody but another who does.
	if command == "images" {
		return lockFile(filepath.Join(p.cluster.Cache, "images.lock"))
	}
	// The state is the machine's, the cache a user's.
	unlockState, err := lockDirectory(p.cluster.State)
	if err != nil {
		return nil, err
	}
	unlockCache, err := lockFile(filepath.Join(p.cluster.Cache, "cluster.lock"))
	if err != nil {
		unlockState()
		return nil, err
	}
	return func() { unlockCache(); unlockState() }, nil
}

// lockDirectory makes the directory where it is missing, and leaves it only with
// something in it.
func lockDirectory(dir string) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the cluster's state: %w", err)
		}
		file, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("lock the cluster: %w", err)
		}
		if err := wait(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		// Whoever had the lock may have deleted it.
		if isAt(file, dir) {
			return func() {
				if isAt(file, dir) {
					_ = os.Remove(dir) // fails unless it is empty
				}
				_ = file.Close()
			}, nil
		}
		_ = file.Close()
	}
}

// isAt tells whether the path leads to the opened directory.
func isAt(opened *os.File, path string) bool {
	is, err := opened.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(is, now)
}

func lockFile(name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cluster: %w", err)
	}
	if err := wait(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

func wait(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		say("waiting for another cluster command to end, which has locked " + file.Name())
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}

// isAlone fails while a cluster with another state runs: two would have the same
// control groups and the same interface of the host.
func (p *program) isAlone() error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, file := range lines {
		line, _ := os.ReadFile(file) // one that has ended meanwhile is no machine
		if state := stateOf(line); state != "" && state != p.cluster.State {
			return fmt.Errorf("another cluster runs on this machine; stop it first: LIKEN_CLUSTER_STATE=%s bin/cluster down", quote.Shell(state))
		}
	}
	return nil
}

// stateOf is the state of the cluster whose control machine has this command line,
// "" for any other.
func stateOf(line []byte) string {
	arguments := bytes.Split(line, []byte{0})
	if len(arguments) < 3 || string(arguments[1]) != machine.BootCommand {
		return ""
	}
	state, found := strings.CutSuffix(string(arguments[2]), "/"+layout.Control+"/machine.json")
	if !found {
		return ""
	}
	return state
}
