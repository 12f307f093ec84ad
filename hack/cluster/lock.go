package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// turn waits for this command's turn, and fails where the cluster is not its to change.
func (p *program) turn(lock func(*program) (unlock func(), err error)) (unlock func(), err error) {
	if err := p.isAlone(); err != nil {
		return nil, err
	}
	// Tests that build and start a cluster for themselves hold the lock below for a
	// quarter of an hour, and are not worth waiting for. They may also have begun while
	// this waited for somebody else; once it has the lock, they wait.
	if err := noTestsRun(testsLock); err != nil {
		return nil, err
	}
	if unlock, err = lock(p); err != nil {
		return nil, err
	}
	if err := noTestsRun(testsLock); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// lockImages keeps others from building images, which takes long and hinders nobody
// else.
func (p *program) lockImages() (unlock func(), err error) {
	if err := p.makeCache(); err != nil {
		return nil, err
	}
	return lockFile(filepath.Join(p.cluster.Cache, "images.lock"))
}

// lockCluster keeps others from changing the cluster: two at a time would start
// everything twice. The state is the machine's, the cache a user's.
func (p *program) lockCluster() (unlock func(), err error) {
	if err := p.makeCache(); err != nil {
		return nil, err
	}
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

func (p *program) makeCache() error {
	if err := os.MkdirAll(p.cluster.Cache, 0o755); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	return nil
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

const (
	// testsLock is held by hack/e2e while it runs, which writes into it who it is.
	testsLock = "/run/lock/liken-e2e.lock"
	// testsVariable is set for all that hack/e2e starts.
	testsVariable = "LIKEN_E2E"
)

// noTestsRun fails while end-to-end tests have the cluster, unless it is they who ask.
// The kernel releases the lock with their process, and what the file says stays.
func noTestsRun(lock string) error {
	if os.Getenv(testsVariable) != "" {
		return nil
	}
	file, err := os.Open(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask whether end-to-end tests run: %w", err)
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("ask whether end-to-end tests run: %w", err)
	}
	who := "hack/e2e"
	if said, err := os.ReadFile(lock); err == nil && len(said) > 0 {
		who, _, _ = strings.Cut(string(said), "\n")
	}
	return fmt.Errorf("end-to-end tests use the cluster (%s): wait until they have ended, or end them if they are yours, and try again", who)
}
