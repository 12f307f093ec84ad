package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// command is one word of the command line and what it takes.
type command struct {
	name, arguments, about string
	// least and most bound how many arguments there are.
	least, most int
	// lock keeps others away meanwhile; nil for what only looks.
	lock func(*program) (unlock func(), err error)
	run  func(p *program, arguments []string) error
}

func commands() []command {
	return []command{
		{
			name: "up", about: "build what is missing, start what is not running",
			lock: (*program).lockCluster,
			run:  func(p *program, _ []string) error { return p.up() },
		},
		{
			name: "build", about: "build what is missing, start nothing",
			lock: (*program).lockCluster,
			run: func(p *program, _ []string) error {
				_, err := p.build()
				return err
			},
		},
		{
			name: "down", about: "stop everything and delete the cluster's state",
			lock: (*program).lockCluster,
			run:  func(p *program, _ []string) error { return p.down() },
		},
		{
			name: "status", about: "say what runs",
			run: func(p *program, _ []string) error { return p.status() },
		},
		{
			name: "env", about: "print what to evaluate in a shell to use kubectl",
			run: func(p *program, _ []string) error { return p.env() },
		},
		{
			name: "images", arguments: "[NAME[=VERSION]]...", most: math.MaxInt,
			about: "build the drivers' images and load them into the nodes",
			lock:  (*program).lockImages,
			run:   (*program).images,
		},
		{
			name: "install", about: "install the drivers that are not, by their charts",
			lock: (*program).lockImages,
			run:  func(p *program, _ []string) error { return p.install() },
		},
		{
			name: "stop", arguments: "NODE", least: 1, most: 1,
			about: "switch a node off, as if its power went",
			lock:  (*program).lockCluster,
			run:   func(p *program, arguments []string) error { return p.stopNode(arguments[0]) },
		},
		{
			name: "start", arguments: "NODE", least: 1, most: 1,
			about: "switch it on again",
			lock:  (*program).lockCluster,
			run:   func(p *program, arguments []string) error { return p.startNode(arguments[0]) },
		},
		{
			name: "exec", arguments: "NODE COMMAND...", least: 2, most: math.MaxInt,
			about: "run a command on a node or on control",
			run:   func(p *program, arguments []string) error { return p.exec(arguments[0], arguments[1:]) },
		},
	}
}

func (c command) line() string { return strings.TrimSpace("cluster " + c.name + " " + c.arguments) }

func usage() string {
	var text strings.Builder
	text.WriteString("usage, in the repository's directory:")
	for _, c := range commands() {
		fmt.Fprintf(&text, "\n  %-35s %s", c.line(), c.about)
	}
	return text.String()
}

// parse finds the command and its arguments.
func parse(arguments []string) (command, []string, error) {
	if len(arguments) == 0 {
		return command{}, nil, errors.New(usage())
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	i := slices.Index(names, arguments[0])
	if i < 0 {
		return command{}, nil, fmt.Errorf("there is no command %q: want one of %s", arguments[0], strings.Join(names, ", "))
	}
	c, rest := commands()[i], arguments[1:]
	if len(rest) < c.least || len(rest) > c.most {
		return command{}, nil, fmt.Errorf("%q does not fit: want %q", "cluster "+strings.Join(arguments, " "), c.line())
	}
	return c, rest, nil
}
