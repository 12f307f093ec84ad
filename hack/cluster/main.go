// Command cluster runs a two-node Kubernetes on this machine, with real kubelets
// and containerds, for tests and for trying things out.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"liken.sh/hack/cluster/cgroup"
	"liken.sh/hack/cluster/initd"
	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/machine"
)

const usage = `usage, in the repository's directory:
  cluster up                     build what is missing, start what is not running
  cluster down                   stop everything and delete the cluster's state
  cluster status                 say what runs
  cluster env                    print what to evaluate in a shell to use kubectl
  cluster images [NAME[=VERSION]]...
                                 build the drivers' images and load them into the nodes
  cluster stop NODE              switch a node off, as if its power went
  cluster start NODE             switch it on again
  cluster exec NODE COMMAND...   run a command on a node or on control`

func main() {
	if len(os.Args) > 2 && os.Args[1] == machine.BootCommand {
		exit(initd.Run(os.Args[2]))
	}
	exit(run(os.Args[1:]))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// program is what the commands share.
type program struct {
	cluster layout.Cluster
	groups  cgroup.Tree
	modules string // the repository's hack/cluster/build
	root    string // the repository
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	p, err := newProgram()
	if err != nil {
		return err
	}
	command, rest := arguments[0], arguments[1:]
	switch {
	case command == "status" && len(rest) == 0:
		return p.status()
	case command == "env" && len(rest) == 0:
		return p.env()
	case command == "exec" && len(rest) > 1:
		return p.exec(rest[0], rest[1:])
	}
	if err := p.isAlone(); err != nil {
		return err
	}
	// Two at a time would start everything twice.
	unlock, err := p.lock(command)
	if err != nil {
		return err
	}
	defer unlock()
	switch {
	case command == "up" && len(rest) == 0:
		return p.up()
	case command == "down" && len(rest) == 0:
		return p.down()
	case command == "images":
		return p.images(rest)
	case command == "stop" && len(rest) == 1:
		return p.stopNode(rest[0])
	case command == "start" && len(rest) == 1:
		return p.startNode(rest[0])
	}
	return errors.New(usage)
}

// newProgram finds out where things are: the cache as other programs do, the state
// where a system keeps what is no user's own.
func newProgram() (*program, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the cluster needs root: it makes namespaces, mounts and control groups")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache: %w", err)
	}
	cluster, err := layout.New(
		cmp.Or(os.Getenv("LIKEN_CLUSTER_STATE"), "/var/lib/liken-cluster"),
		filepath.Join(cache, "liken-cluster"),
		cmp.Or(os.Getenv("LIKEN_CLUSTER_NETWORK"), "10.213.0.0/16"),
	)
	if err != nil {
		return nil, err
	}
	groups, err := cgroup.Find(cgroup.Root)
	if err != nil {
		return nil, err
	}
	root, err := repository()
	if err != nil {
		return nil, err
	}
	return &program{
		cluster: cluster, groups: groups, root: root,
		modules: filepath.Join(root, "hack/cluster/build"),
	}, nil
}

// repository is the nearest directory upwards that has the workspace.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack/cluster/build")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the repository, which the cluster is built from", start)
		}
	}
}

func (p *program) machine(name string) *machine.Machine {
	return machine.New(name, p.cluster, p.groups)
}

// named is the machine a person asked for.
func (p *program) named(name string, among []string) (*machine.Machine, error) {
	for _, known := range among {
		if known == name {
			return p.machine(name), nil
		}
	}
	return nil, fmt.Errorf("there is no %q: want one of %s", name, strings.Join(among, ", "))
}

func say(line string) { fmt.Println(line) }
