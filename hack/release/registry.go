package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// localRegistry serves a registry on this machine, for a rehearsal, until stop is called.
func localRegistry(t tools, dir string) (host string, stop func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("make room for a registry: %w", err)
	}
	serve := exec.Command(t.crane, "registry", "serve", "--address", "127.0.0.1:0", "--disk", dir)
	// It must not outlive a rehearsal that is killed.
	serve.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := serve.StderrPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start a registry: %w", err)
	}
	if err := serve.Start(); err != nil {
		return "", nil, fmt.Errorf("start a registry: %w", err)
	}
	stop = func() error {
		if err := serve.Process.Kill(); err != nil {
			return fmt.Errorf("stop the registry: %w", err)
		}
		var killed *exec.ExitError
		if err := serve.Wait(); err != nil && !errors.As(err, &killed) {
			return fmt.Errorf("stop the registry: %w", err)
		}
		return nil
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, port, found := strings.Cut(lines.Text(), "serving on port "); found {
			// Who writes into a pipe that is not read stands still.
			go func() {
				for lines.Scan() {
				}
			}()
			return "127.0.0.1:" + port, stop, nil
		}
	}
	return "", nil, errors.Join(errors.New("the registry ended before it served"), stop())
}
