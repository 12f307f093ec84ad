package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// stopNode cuts the node's power: nothing on it gets to say good-bye.
func (p *program) stopNode(name string) error {
	node, err := p.named(name, p.cluster.Nodes())
	if err != nil {
		return err
	}
	return node.Stop()
}

func (p *program) startNode(name string) error {
	node, err := p.named(name, p.cluster.Nodes())
	if err != nil {
		return err
	}
	if err := p.controlRuns(); err != nil {
		return err
	}
	if _, running := node.PID(); running {
		say(name + " is running")
		return nil
	}
	if err := p.boot(name); err != nil {
		return errors.Join(err, node.Stop())
	}
	return nil
}

// exec runs a command on a machine, and ends with its exit code.
func (p *program) exec(name string, argv []string) error {
	m, err := p.named(name, p.cluster.Machines())
	if err != nil {
		return err
	}
	if argv[0] == "--" {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return fmt.Errorf("no command to run on %s: want one after the --", name)
	}
	command, err := m.Command(argv...)
	if err != nil {
		return err
	}
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := command.Run(); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	} else if err != nil {
		return fmt.Errorf("run %s on %s: %w", argv[0], name, err)
	}
	return nil
}

func (p *program) status() error {
	for _, name := range p.cluster.Machines() {
		m := p.machine(name)
		pid, running := m.PID()
		if !running {
			say(name + ": not running")
			continue
		}
		say(fmt.Sprintf("%s: %s, process %d", name, p.cluster.Address(name), pid))
		status, err := m.Status()
		if err != nil {
			return err
		}
		for _, service := range status {
			line := fmt.Sprintf("  %s: started %d times", service.Name, service.Starts)
			if service.LastEnd != "" {
				line += ", last ended with " + service.LastEnd
			}
			say(line)
		}
	}
	if err := p.controlRuns(); err != nil {
		say(err.Error())
	}
	return nil
}
