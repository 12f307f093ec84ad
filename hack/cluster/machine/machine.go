// Package machine starts and stops the machines of the cluster from the host. A
// machine is a process in namespaces of its own, whose end is the end of every
// process, mount and interface in it: so stopping is one kill, and nothing has to
// be found and undone one by one. It must never signal a process that it has not
// itself recorded, nor delete a disk while a machine runs on it.
package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"liken.sh/hack/cluster/cgroup"
	"liken.sh/hack/cluster/initd"
	"liken.sh/hack/cluster/layout"
)

// BootCommand is the argument with which this program starts as a machine's first
// process.
const BootCommand = "machine"

// Namespaces are those that a machine has of its own. Control groups are not among
// them: the kubelet's and the host's paths have to be the same.
const Namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// Machine is one machine, running or not.
type Machine struct {
	Name    string
	cluster layout.Cluster
	groups  cgroup.Tree
}

// New is the machine of that name.
func New(name string, cluster layout.Cluster, groups cgroup.Tree) *Machine {
	return &Machine{Name: name, cluster: cluster, groups: groups}
}

func (m *Machine) file(name string) string { return filepath.Join(m.cluster.Dir(m.Name), name) }

// PID is the machine's first process as the host counts, and whether it runs.
func (m *Machine) PID() (int, bool) {
	p, err := recorded(m.file("process.json"))
	return p.PID, err == nil
}

// Booted is when the machine was last started.
func (m *Machine) Booted() time.Time {
	info, err := os.Stat(m.file("process.json"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Start boots the machine. plug connects it, given its process, and what it fails
// with fails the start. The machine outlives the caller.
func (m *Machine) Start(spec initd.Spec, plug func(pid int) error) error {
	if _, running := m.PID(); running {
		return fmt.Errorf("start %s: it is running", m.Name)
	}
	content, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return fmt.Errorf("describe %s: %w", m.Name, err)
	}
	if err := os.WriteFile(m.file("machine.json"), content, 0o644); err != nil {
		return fmt.Errorf("describe %s: %w", m.Name, err)
	}
	// What the last boot left must not be taken for this one's.
	if err := os.Remove(m.statusFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("start %s: %w", m.Name, err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", m.Name, err)
	}
	defer writer.Close()
	pid, err := m.launch(reader)
	_ = reader.Close() // the machine has its own
	if err != nil {
		return fmt.Errorf("start %s: %w", m.Name, err)
	}
	if err := m.connect(pid, plug, writer); err != nil {
		return errors.Join(err, m.Stop())
	}
	return nil
}

// launch starts the machine's first process, which waits for the pipe.
func (m *Machine) launch(pipe *os.File) (pid int, err error) {
	log, err := os.OpenFile(m.file("boot.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	command := exec.Command(program, BootCommand, m.file("machine.json"))
	command.Stdout, command.Stderr = log, log
	command.ExtraFiles = []*os.File{pipe}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: Namespaces,
		Setsid:     true, // ^C is the caller's
	}
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("make namespaces: %w", err)
	}
	// Reaps it where this program is there to see it end.
	go func() { _ = command.Wait() }()
	running, err := observe(command.Process.Pid)
	if err == nil {
		err = running.record(m.file("process.json"))
	}
	if err != nil {
		return 0, errors.Join(err, command.Process.Kill(), errors.New(m.BootLog()))
	}
	return running.PID, nil
}

func (m *Machine) connect(pid int, plug func(pid int) error, network *os.File) error {
	if err := m.groups.Enter(m.cluster.Cgroup(m.Name), pid); err != nil {
		return err
	}
	if err := plug(pid); err != nil {
		return fmt.Errorf("connect %s: %w: %s", m.Name, err, m.BootLog())
	}
	if _, err := network.Write([]byte{1}); err != nil {
		return fmt.Errorf("boot %s: %w: %s", m.Name, err, m.BootLog())
	}
	return nil
}

// stopTimeout is long: on a busy host the kernel takes seconds to take down
// hundreds of processes.
const stopTimeout = time.Minute

// Stop is the power switch: it returns once nothing of the machine runs and its
// control groups are gone. The disk stays.
func (m *Machine) Stop() error {
	running, err := recorded(m.file("process.json"))
	if err == nil {
		err = kill(running)
	}
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("stop %s: %w", m.Name, err)
	}
	if err := m.groups.Remove(m.cluster.Cgroup(m.Name)); err != nil {
		return fmt.Errorf("stop %s: %w", m.Name, err)
	}
	return nil
}

// kill ends the process and waits for its end, before which the kernel has ended
// all others of its namespace.
func kill(p process) error {
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	deadline := time.Now().Add(stopTimeout)
	for time.Now().Before(deadline) {
		now, err := observe(p.PID)
		if errors.Is(err, errGone) || (err == nil && now != p) {
			waitForReaper(p.PID)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("process %d does not end within %s of being killed", p.PID, stopTimeout)
}

// waitForReaper gives the host's init a moment to take note of the end, so that
// nobody finds a zombie and wonders. Where it does not, that is all there is left.
func waitForReaper(pid int) {
	for range 200 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Command is a command on the machine, in all its namespaces.
func (m *Machine) Command(argv ...string) (*exec.Cmd, error) {
	pid, running := m.PID()
	if !running {
		return nil, fmt.Errorf("%s is not running", m.Name)
	}
	command := exec.Command("nsenter", append([]string{
		"--target", strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--",
	}, argv...)...)
	command.Env = []string{
		"HOME=/root", "TERM=" + os.Getenv("TERM"),
		"PATH=/opt/containerd:/opt/kubernetes:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	return command, nil
}

// Plug runs commands that connect machines.
func Plug(commands []layout.Command) error {
	for _, command := range commands {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}
