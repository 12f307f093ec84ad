package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"liken.sh/csicommon/quote"
	"liken.sh/hack/cluster/component"
	"liken.sh/hack/cluster/initd"
	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/machine"
	"liken.sh/hack/cluster/toolset"
)

// up makes the cluster run, whatever of it does already.
func (p *program) up() error {
	began := time.Now()
	if err := p.keepsNetwork(); err != nil {
		return err
	}
	if err := p.onlyOwn(); err != nil {
		return err
	}
	missing := p.notRunning()
	if len(missing) > 0 {
		if err := p.makeReady(missing); err != nil {
			return err
		}
	}
	for _, name := range p.cluster.Machines() {
		if err := p.ensure(name, missing); err != nil {
			return errors.Join(err, p.stopThese(missing))
		}
	}
	if len(missing) == 0 {
		say("the cluster is running")
	} else {
		say(fmt.Sprintf("the cluster is ready, after %s", time.Since(began).Round(time.Second)))
	}
	p.explain()
	return nil
}

// notRunning are the machines to start. All are where control is not complete,
// since the nodes' cables end in it and went with it.
func (p *program) notRunning() []string {
	var names []string
	for _, name := range p.cluster.Machines() {
		_, running := p.machine(name).PID()
		if name == layout.Control && (!running || !hostIsConnected()) {
			return p.cluster.Machines()
		}
		if !running {
			names = append(names, name)
		}
	}
	return names
}

func (p *program) running() []string {
	var names []string
	for _, name := range p.cluster.Machines() {
		if _, running := p.machine(name).PID(); running {
			names = append(names, name)
		}
	}
	return names
}

// restartNotice says that, and why, machines that run are about to be stopped, ""
// where none is: somebody's pods end with them.
func restartNotice(missing, running []string) string {
	var stopped []string
	for _, name := range running {
		if slices.Contains(missing, name) {
			stopped = append(stopped, name)
		}
	}
	if len(stopped) == 0 {
		return ""
	}
	why := "control, which connects them, does not run"
	if slices.Contains(stopped, layout.Control) {
		why = "the host's interface " + layout.HostLink + " is gone, and control makes it when it starts"
	}
	return fmt.Sprintf("restarting %s with all that runs there: %s", strings.Join(stopped, ", "), why)
}

// makeReady sees to all that has to be there before a machine starts.
func (p *program) makeReady(missing []string) error {
	if notice := restartNotice(missing, p.running()); notice != "" {
		say(notice)
	}
	if err := p.stopThese(missing); err != nil {
		return err
	}
	if err := p.preflight(); err != nil {
		return err
	}
	if _, err := p.build(); err != nil {
		return err
	}
	if err := p.buildSystemImages(); err != nil {
		return err
	}
	return p.prepare()
}

// ensure starts the machine where it is missing, and waits until it does its work.
func (p *program) ensure(name string, missing []string) error {
	if !slices.Contains(missing, name) {
		return p.settle(name)
	}
	say("starting " + name)
	return p.boot(name)
}

// build returns where a machine sees the programs, and where the host has them.
func (p *program) build() (map[string]string, error) {
	builder := toolset.Builder{Modules: p.modules, Cache: p.cluster.Cache, Progress: say}
	built := map[string]string{}
	for _, set := range toolset.Sets() {
		dir, err := builder.Ensure(set)
		if err != nil {
			return nil, err
		}
		built["/opt/"+set.Name] = dir
	}
	return built, nil
}

// prepare writes the machines' files: configuration anew, so that it fits the
// programs, and credentials once, since what runs and what pods were given goes by
// them.
func (p *program) prepare() error {
	files := map[string]component.Files{}
	if _, err := os.Stat(p.cluster.Kubeconfig()); err != nil {
		if files, err = component.Credentials(p.cluster); err != nil {
			return err
		}
	}
	for _, name := range p.cluster.Machines() {
		if err := os.MkdirAll(p.cluster.Root(name), 0o755); err != nil {
			return fmt.Errorf("make the disk of %s: %w", name, err)
		}
		snapshotter, err := snapshotter(p.cluster.Root(name))
		if err != nil {
			return err
		}
		if files[name] == nil {
			files[name] = component.Files{}
		}
		maps.Copy(files[name], component.Configuration(p.cluster, name, snapshotter))
		if err := write(p.cluster.Root(name), files[name]); err != nil {
			return err
		}
	}
	// Last: it tells that there are credentials.
	if admin := files[component.Admin]; admin != nil {
		network := []byte(p.cluster.Network.String() + "\n")
		if err := os.WriteFile(p.cluster.NetworkFile(), network, 0o644); err != nil {
			return fmt.Errorf("record the network: %w", err)
		}
		content := admin[component.KubeconfigPath(component.Admin)]
		if err := os.WriteFile(p.cluster.Kubeconfig(), content, 0o600); err != nil {
			return fmt.Errorf("write the kubeconfig: %w", err)
		}
	}
	return nil
}

func write(root string, files component.Files) error {
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
		mode := os.FileMode(0o644)
		if filepath.Dir(name) == component.PKIDir {
			mode = 0o600
		}
		if err := os.WriteFile(file, content, mode); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	return nil
}

// boot starts the machine and waits until it does its work.
func (p *program) boot(name string) error {
	built, err := p.build()
	if err != nil {
		return err
	}
	m := p.machine(name)
	spec := initd.Spec{
		Hostname: name,
		Root:     p.cluster.Root(name),
		Programs: built,
		OnBoot:   p.cluster.OnBoot(name),
		Services: component.Services(p.cluster, name),
	}
	if err := m.Start(spec, func(pid int) error { return p.plug(name, pid) }); err != nil {
		return err
	}
	if name == layout.Control {
		if err := p.connectHost(m); err != nil {
			return err
		}
	}
	return p.settle(name)
}

// settle waits until the machine does its work.
func (p *program) settle(name string) error {
	if name == layout.Control {
		return p.waitForAPI(p.machine(name))
	}
	return p.waitForNode(p.machine(name))
}

// plug connects a node. The control machine has its bridge only once it has
// booted, so the host is connected then.
func (p *program) plug(name string, pid int) error {
	if name == layout.Control {
		return nil
	}
	control, running := p.machine(layout.Control).PID()
	if !running {
		return errors.New("control is not running")
	}
	// Nothing to unplug is what is usual.
	_ = machine.Plug(p.cluster.UnplugNode(name, control))
	return machine.Plug(p.cluster.PlugNode(name, control, pid))
}

// explain tells how to use what runs.
func (p *program) explain() {
	say("\nTo use it:")
	if err := p.env(); err != nil {
		say(err.Error())
	}
	say("  kubectl get nodes")
	say(fmt.Sprintf("\nLogs are in %s/*/root/var/log. `make cluster-down` stops and deletes it all.", p.cluster.State))
}

// env prints shell commands.
func (p *program) env() error {
	if err := p.controlRuns(); err != nil {
		return err
	}
	builder := toolset.Builder{Modules: p.modules, Cache: p.cluster.Cache}
	for _, set := range toolset.Sets() {
		if set.Name != "kubernetes" {
			continue
		}
		dir, err := builder.Dir(set)
		if err != nil {
			return err
		}
		say("  export KUBECONFIG=" + quote.Shell(p.cluster.Kubeconfig()))
		say("  export PATH=" + quote.Shell(dir) + ":" + quote.Shell(filepath.Join(p.root, "bin")) + ":$PATH")
	}
	return nil
}
