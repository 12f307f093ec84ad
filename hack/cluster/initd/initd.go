// Package initd is process 1 of a machine: a set of namespaces that look to the
// programs in them like a computer of their own. It puts the machine's disk in
// place, sets up its network and keeps its services running. It must never run
// outside of new namespaces: it moves the root directory and reaps every child.
package initd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"liken.sh/hack/cluster/component"
	"liken.sh/hack/cluster/layout"
)

// Spec is a machine.
type Spec struct {
	Hostname string
	// Root is the host's directory that becomes the machine's /.
	Root string
	// Programs are host directories the machine sees read-only, by where.
	Programs map[string]string
	// OnBoot are run in order, once the network is plugged in.
	OnBoot   []layout.Command
	Services []component.Service
}

// PluggedIn is the descriptor init reads a byte from once the host has connected
// the machine's network.
const PluggedIn = 3

// StatusFile is where a machine writes how its services are, in JSON of []Status.
const StatusFile = "/var/lib/machine/services.json"

// Run boots the machine that the file describes and returns only on failure: a
// machine ends by being killed, which takes everything in it along.
func Run(file string) error {
	// In any other process it would unmount what the host is using.
	if os.Getpid() != 1 {
		return errors.New("this starts a machine and must be process 1 of new namespaces; use the command up")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the machine's description: %w", err)
	}
	var spec Spec
	if err := json.Unmarshal(content, &spec); err != nil {
		return fmt.Errorf("read the machine's description %s: %w", file, err)
	}
	if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := enter(spec); err != nil {
		return err
	}
	if err := waitForNetwork(); err != nil {
		return err
	}
	for _, command := range spec.OnBoot {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, output)
		}
	}
	// The machine is its pods' router.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("switch on forwarding: %w", err)
	}
	return newSupervisor(spec.Services).run()
}

// waitForNetwork ends with an error where the starting process went away, and with
// it whoever would have stopped a machine that waits.
func waitForNetwork() error {
	pipe := os.NewFile(PluggedIn, "network")
	defer pipe.Close()
	if _, err := pipe.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("wait to be connected: %w", err)
	}
	syscall.CloseOnExec(PluggedIn)
	return nil
}
