// Command cluster runs a two-node Kubernetes on this machine, with real kubelets
// and containerds, for tests and for trying things out.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"liken.sh/hack/cluster/cgroup"
	"liken.sh/hack/cluster/initd"
	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/machine"
)

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
	// asked is the network that the environment names; not valid where it names none.
	asked   netip.Prefix
	groups  cgroup.Tree
	modules string // the repository's hack/cluster/build
	root    string // the repository
}

func run(arguments []string) error {
	if len(arguments) > 0 && slices.Contains([]string{"help", "-h", "--help"}, arguments[0]) {
		say(usage())
		return nil
	}
	c, rest, err := parse(arguments)
	if err != nil {
		return err
	}
	p, err := newProgram()
	if err != nil {
		return err
	}
	if c.lock != nil {
		unlock, err := p.turn(c.lock)
		if err != nil {
			return err
		}
		defer unlock()
	}
	return c.run(p, rest)
}

// newProgram finds out where things are: the cache as other programs do, the state
// where a system keeps what is no user's own.
func newProgram() (*program, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the cluster needs root, to make namespaces, mounts and control groups: become root")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache: %w", err)
	}
	asked := os.Getenv(layout.NetworkVariable)
	cluster, err := layout.New(
		cmp.Or(os.Getenv(layout.StateVariable), "/var/lib/liken-cluster"),
		filepath.Join(cache, "liken-cluster"),
		cmp.Or(asked, "10.213.0.0/16"),
	)
	if err != nil {
		return nil, err
	}
	p := &program{cluster: cluster}
	if asked != "" {
		p.asked = cluster.Network
	}
	if p.cluster.Network, err = networkOf(cluster); err != nil {
		return nil, err
	}
	if p.groups, err = cgroup.Find(cgroup.Root); err != nil {
		return nil, err
	}
	if p.root, err = repository(); err != nil {
		return nil, err
	}
	p.modules = filepath.Join(p.root, "hack/cluster/build")
	return p, nil
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
