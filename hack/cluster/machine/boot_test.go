package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"liken.sh/hack/cluster/cgroup"
	"liken.sh/hack/cluster/component"
	"liken.sh/hack/cluster/initd"
	"liken.sh/hack/cluster/layout"
)

// A machine's first process is this program, as it is of the real command.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == BootCommand {
		fmt.Fprintln(os.Stderr, initd.Run(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// boot starts a machine with one service, which mounts something, leaves a process
// behind that nobody waits for, and stays.
func boot(t *testing.T) *Machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a machine needs root, to make namespaces and mounts")
	}
	cluster, err := layout.New(t.TempDir(), t.TempDir(), "10.213.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	m := New(layout.Node1, cluster, cgroup.Tree{})
	root := cluster.Root(m.Name)
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	const script = `mkdir -p /mnt && mount -t tmpfs mine /mnt && touch /mnt/seen
		setsid sleep 600 & hostname; exec sleep 600`
	spec := initd.Spec{
		Hostname: m.Name, Root: root,
		Services: []component.Service{{Name: "service", Argv: []string{"/bin/sh", "-c", script}}},
	}
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := m.Start(spec, func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the service starts: "+m.BootLog(), func() bool { return service(t, m).PID != 0 })
	return m
}

func service(t *testing.T, m *Machine) initd.Status {
	t.Helper()
	status, err := m.Status()
	if err != nil {
		t.Fatal(err)
	}
	if len(status) == 0 {
		return initd.Status{}
	}
	return status[0]
}

func TestMachineIsApart(t *testing.T) {
	m := boot(t)
	eventually(t, "the service says its host name", func() bool {
		log, err := os.ReadFile(m.LogFile("service"))
		return err == nil && string(log) == "node-1\n"
	})
	command, err := m.Command("/bin/sh", "-c", "ls /mnt; ls /sys/class/net; ls /home 2>&1")
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.CombinedOutput()
	if got := string(output); !strings.HasPrefix(got, "seen\nlo\n") || !strings.Contains(got, "/home") || err == nil {
		t.Errorf("on the machine: %q, %v; want its mount, lo alone, and no /home", got, err)
	}
	if _, err := os.Stat(filepath.Join(m.cluster.Root(m.Name), "mnt/seen")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the machine's mount shows on the host: %v", err)
	}
}

func TestServiceIsStartedAgain(t *testing.T) {
	m := boot(t)
	before := service(t, m)
	command, err := m.Command("/bin/sh", "-c", "kill -9 "+strconv.Itoa(before.PID))
	if err != nil {
		t.Fatal(err)
	}
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	eventually(t, "the service is started again", func() bool {
		now := service(t, m)
		return now.PID != 0 && now.PID != before.PID && now.Starts == 2 && strings.Contains(now.LastEnd, "killed")
	})
	if err := m.Failure(); err != nil {
		t.Errorf("one end counts as a failure: %v", err)
	}
}

func TestStopLeavesNoProcess(t *testing.T) {
	m := boot(t)
	pid, running := m.PID()
	if !running {
		t.Fatal("the machine does not run")
	}
	// The namespace has a name of its own as long as a process is in it.
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid_for_children", pid))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the machine has its first process, the service and what that left", func() bool {
		return members(t, namespace) >= 3
	})
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := members(t, namespace); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, running := m.PID(); running {
		t.Error("the machine counts as running")
	}
	if err := m.Stop(); err != nil {
		t.Errorf("stopped a second time: %v", err)
	}
}

// members counts the processes in a namespace that are more than zombies.
func members(t *testing.T, namespace string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && name == namespace {
			n++
		}
	}
	return n
}

func TestFailedPlugStopsTheMachine(t *testing.T) {
	m := boot(t)
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
	var pid int
	err := m.Start(initd.Spec{Root: m.cluster.Root(m.Name)}, func(p int) error {
		pid = p
		return errors.New("no cable")
	})
	if err == nil || !strings.Contains(err.Error(), "no cable") {
		t.Errorf("got %v", err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Error("the machine runs on")
	}
}
