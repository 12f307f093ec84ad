package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// askEvery is how often a waited-for answer is asked for.
const askEvery = 20 * time.Millisecond

// plugin is a driver's process.
type plugin struct {
	process *exec.Cmd
	log     *logBuffer
	ended   chan error
}

// logBuffer keeps what the plugin logs, also while it is read.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startPlugin starts the driver; it is killed when the demo ends in any way.
func startPlugin(path string, arguments ...string) (*plugin, error) {
	return startProcess(exec.Command(path, arguments...))
}

// startProcess is startPlugin for any process. The log has all that it prints.
func startProcess(process *exec.Cmd) (*plugin, error) {
	p := &plugin{process: process, log: &logBuffer{}, ended: make(chan error, 1)}
	p.process.Stdout, p.process.Stderr = p.log, p.log
	p.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// Pdeathsig follows the thread that starts the process, so that one has to
		// stay as long as the process does.
		runtime.LockOSThread()
		err := p.process.Start()
		started <- err
		if err == nil {
			p.ended <- p.process.Wait() // whoever takes it puts it back
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the driver (make build makes it): %w", err)
	}
	return p, nil
}

// awaitLine waits until the plugin has logged a line with these words.
func (p *plugin) awaitLine(ctx context.Context, words string) error {
	return p.await(ctx, words, func(log string) bool { return strings.Contains(log, words) })
}

// awaitMore waits until the plugin has logged more than so many bytes, for the sake of
// these words.
func (p *plugin) awaitMore(ctx context.Context, length int, words string) error {
	return p.await(ctx, words, func(log string) bool { return len(log) > length })
}

func (p *plugin) await(ctx context.Context, words string, there func(log string) bool) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for !there(p.log.String()) {
		select {
		case err := <-p.ended:
			p.ended <- err
			return fmt.Errorf("the driver ended by itself, before it said %q: %w", words, err)
		case <-ctx.Done():
			return fmt.Errorf("the driver does not say %q: %w", words, context.Cause(ctx))
		case <-ticker.C:
		}
	}
	return nil
}

// stop sends the signal and waits for the end.
func (p *plugin) stop(ctx context.Context, signal syscall.Signal) error {
	if err := p.process.Process.Signal(signal); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-ctx.Done():
		return fmt.Errorf("the driver does not end on %s: %w", signal, context.Cause(ctx))
	}
}

// abandon ends the process if it still runs, and returns why with its log when
// the story failed.
func (p *plugin) abandon(failure error) error {
	if err := p.process.Process.Kill(); err == nil {
		p.ended <- <-p.ended
	}
	if failure == nil {
		return nil
	}
	return fmt.Errorf("%w\n--- the log of %s ---\n%s", failure, filepath.Base(p.process.Path), p.log)
}

// fetch gets a page of the plugin's, once it serves.
func fetch(ctx context.Context, url string) (string, error) {
	for {
		body, err := fetchOnce(ctx, url)
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) {
			return body, err
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(askEvery):
		}
	}
}

func fetchOnce(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return string(body), err
}

// freeAddress is one on this machine that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
