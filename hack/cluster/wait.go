package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"liken.sh/hack/cluster/component"
	"liken.sh/hack/cluster/initd"
	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/machine"
	"liken.sh/hack/cluster/toolset"
)

// patience is for a host that is busy with other things: what cannot come up is
// noticed long before, by its ending again and again.
const patience = 4 * time.Minute

// until asks again and again whether the machine is as wanted. Where time is up, it
// blames the service.
func until(m *machine.Machine, service, wanted string, ask func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if failure := m.Failure(); failure != nil {
			return failure
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s after %s: %w", wanted, patience, err), blame(m, service))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func blame(m *machine.Machine, service string) error {
	status, err := m.Status()
	if err != nil {
		return err
	}
	for _, s := range status {
		if s.Name == service {
			return m.Explain(s)
		}
	}
	return m.Explain(initd.Status{Name: service})
}

// connectHost connects the host as soon as the control machine has a bridge.
func (p *program) connectHost(control *machine.Machine) error {
	err := until(control, component.Etcd, "control has no network", func() error {
		status, err := control.Status()
		if err == nil && len(status) == 0 {
			return errors.New("it has not booted")
		}
		return err
	})
	if err != nil {
		return err
	}
	pid, _ := control.PID()
	return machine.Plug(p.cluster.PlugHost(pid))
}

// waitForAPI also waits for the account that pods run as: a pod is refused before
// the controllers have made it.
func (p *program) waitForAPI(control *machine.Machine) error {
	err := until(control, component.APIServer, "the API server is not ready", func() error {
		_, err := p.kubectl("get", "--raw=/readyz")
		return err
	})
	if err != nil {
		return err
	}
	return until(control, component.ControllerManager, "the controllers do not work", func() error {
		_, err := p.kubectl("--namespace=default", "get", "serviceaccount/default", "configmap/kube-root-ca.crt")
		return err
	})
}

func (p *program) waitForNode(node *machine.Machine) error {
	err := until(node, component.Containerd, "containerd does not answer", func() error {
		return ctr(node, nil, "version")
	})
	if err != nil {
		return err
	}
	if err := p.load(node); err != nil {
		return err
	}
	return until(node, component.Kubelet, node.Name+" is not Ready", func() error {
		output, err := p.kubectl("get", "node", node.Name,
			`--output=jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime} {.message}{end}`)
		if err != nil {
			return err
		}
		return ready(output, node)
	})
}

// ready reads the condition. A node that was switched off is Ready by what it said
// last, so only what this boot of it said counts.
func ready(condition string, node *machine.Machine) error {
	status, rest, _ := strings.Cut(condition, " ")
	heartbeat, message, _ := strings.Cut(rest, " ")
	if status != "True" {
		return fmt.Errorf("the node says: %s", message)
	}
	said, err := time.Parse(time.RFC3339, heartbeat)
	if err != nil {
		return fmt.Errorf("read when the node was last Ready: %w", err)
	}
	if booted := node.Booted(); said.Before(booted.Truncate(time.Second)) {
		return errors.New("its kubelet has not reported since it booted")
	}
	return nil
}

// kubectl runs the one that was built, as the administrator.
func (p *program) kubectl(arguments ...string) (string, error) {
	builder := toolset.Builder{Modules: p.modules, Cache: p.cluster.Cache}
	for _, set := range toolset.Sets() {
		if set.Name != "kubernetes" {
			continue
		}
		dir, err := builder.Dir(set)
		if err != nil {
			return "", err
		}
		arguments = append([]string{"--kubeconfig=" + p.cluster.Kubeconfig(), "--request-timeout=10s"}, arguments...)
		output, err := exec.Command(filepath.Join(dir, "kubectl"), arguments...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("kubectl: %w: %s", err, strings.TrimSpace(string(output)))
		}
		return string(output), nil
	}
	return "", errors.New("no set has kubectl")
}

// ctr runs containerd's client on the node.
func ctr(node *machine.Machine, input *os.File, arguments ...string) error {
	command, err := node.Command(append([]string{
		"ctr", "--address", component.ContainerdSocket, "--namespace", "k8s.io",
	}, arguments...)...)
	if err != nil {
		return err
	}
	if input != nil {
		command.Stdin = input
	}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %s: %w: %s", arguments[0], err, strings.TrimSpace(string(output)))
	}
	return nil
}

// controlRuns is for commands that need an API server.
func (p *program) controlRuns() error {
	if _, running := p.machine(layout.Control).PID(); running {
		return nil
	}
	if err := p.isAlone(); err != nil {
		return err
	}
	return errors.New("the cluster is not running: make cluster")
}
