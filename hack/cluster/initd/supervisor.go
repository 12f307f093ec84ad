package initd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"liken.sh/hack/cluster/component"
)

// Status is how a service is.
type Status struct {
	Name string
	// PID is the service's process as the machine counts, 0 between two starts.
	PID int
	// Starts counts from 1.
	Starts int
	// LastEnd says how the last process ended, "" while the first one runs.
	LastEnd string
}

// restartDelay keeps a service that cannot run from using up a processor.
const restartDelay = time.Second

// supervisor starts services, starts them again when they end, and reaps every
// orphan of the machine. One lock is held from before a start to after its process
// is known, so that the reaper never finds an end it cannot tell the owner of.
type supervisor struct {
	mu       sync.Mutex
	services []component.Service
	status   []Status
	started  chan struct{} // a process may have appeared
	failed   chan error
}

func newSupervisor(services []component.Service) *supervisor {
	s := &supervisor{services: services, started: make(chan struct{}, 1), failed: make(chan error, 1)}
	for _, service := range services {
		s.status = append(s.status, Status{Name: service.Name})
	}
	return s
}

// run returns only when it cannot go on.
func (s *supervisor) run() error {
	for i := range s.services {
		if err := s.start(i); err != nil {
			return err
		}
	}
	go func() { s.failed <- s.reap() }()
	return <-s.failed
}

func (s *supervisor) start(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	service := s.services[i]
	log, err := os.OpenFile(filepath.Join("/var/log", service.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", service.Name, err)
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("open the input of %s: %w", service.Name, err)
	}
	defer null.Close()
	process, err := os.StartProcess(service.Argv[0], service.Argv, &os.ProcAttr{
		Dir: "/",
		Env: []string{
			"HOME=/root",
			"PATH=" + component.ContainerdBin + ":" + component.KubernetesBin + ":/usr/sbin:/usr/bin:/sbin:/bin",
		},
		Files: []*os.File{null, log, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	status := &s.status[i]
	status.Starts++
	if err != nil {
		// As good as a process that ended: it is tried again, and the count tells.
		status.LastEnd = err.Error()
		s.startLater(i)
		return s.write()
	}
	status.PID = process.Pid
	// The reaper learns of its end; this handle is of no use.
	if err := process.Release(); err != nil {
		return fmt.Errorf("let go of %s: %w", service.Name, err)
	}
	select {
	case s.started <- struct{}{}:
	default:
	}
	return s.write()
}

func (s *supervisor) startLater(i int) {
	time.AfterFunc(restartDelay, func() {
		if err := s.start(i); err != nil {
			s.failed <- err
		}
	})
}

// reap waits for every child: orphans of the whole machine become this process's.
func (s *supervisor) reap() error {
	for {
		var wait syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &wait, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ECHILD):
			<-s.started
			continue
		case err != nil:
			return fmt.Errorf("wait for the machine's processes: %w", err)
		}
		if err := s.ended(pid, describe(wait)); err != nil {
			return err
		}
	}
}

func (s *supervisor) ended(pid int, how string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.status {
		if s.status[i].PID != pid {
			continue
		}
		s.status[i].PID = 0
		s.status[i].LastEnd = how
		s.startLater(i)
		return s.write()
	}
	return nil
}

func describe(wait syscall.WaitStatus) string {
	if wait.Signaled() {
		return "killed by signal: " + wait.Signal().String()
	}
	return fmt.Sprintf("exit status %d", wait.ExitStatus())
}

// write renames, so that a reader never sees half a file.
func (s *supervisor) write() error {
	content, err := json.Marshal(s.status)
	if err != nil {
		return fmt.Errorf("encode the services' status: %w", err)
	}
	if err := os.WriteFile(StatusFile+".new", content, 0o644); err != nil {
		return fmt.Errorf("write the services' status: %w", err)
	}
	if err := os.Rename(StatusFile+".new", StatusFile); err != nil {
		return fmt.Errorf("write the services' status: %w", err)
	}
	return nil
}
