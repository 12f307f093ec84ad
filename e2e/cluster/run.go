package cluster

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// Run connects to the cluster, installs the driver as its page says, runs the tests and
// takes all away again. What a run that was cut off left behind is removed first. It
// returns the exit code of the tests' process. root is the repository's; connected is given
// the cluster before anything is done to it.
func Run(m *testing.M, root string, d *Driver, connected func(*Cluster)) int {
	if err := runWith(m, root, d, connected); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// errFailed has been told by the tests.
var errFailed = errors.New("tests failed")

func runWith(m *testing.M, root string, d *Driver, connected func(*Cluster)) error {
	bin, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	if d.Kube, err = Connect(root, bin); err != nil {
		return err
	}
	connected(d.Kube)
	if err := d.prepare(); err != nil {
		return err
	}
	code := m.Run()
	if err := errors.Join(d.ClearAway(), d.Uninstall()); err != nil {
		return err
	}
	if code != 0 {
		return errFailed
	}
	return nil
}

// prepare is done while every node is there.
func (d *Driver) prepare() error {
	unlock, err := d.Kube.nodes.share()
	if err != nil {
		return err
	}
	defer unlock()
	fmt.Println("installing " + d.Name)
	if err := d.Install(); err != nil {
		state, _ := d.Kube.Try("", "kubectl", "--namespace", d.Namespace, "describe", "pods")
		logs, _ := d.Kube.Try("", "kubectl", "--namespace", d.Namespace, "logs", "daemonset/"+d.DaemonSet, "--all-pods")
		return fmt.Errorf("%w\n%s\n%s", err, state, logs)
	}
	return d.ClearAway()
}
