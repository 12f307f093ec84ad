//go:build e2e

package pernode

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"liken.sh/e2e/cluster"
	"liken.sh/e2e/page"
)

const (
	// root is the repository's, seen from this package, and docs the driver's pages.
	root = "../.."
	docs = root + "/pernode/docs"
	// driver is the name in CSI, and what follows is what the documentation's
	// commands install.
	driver    = "per-node.liken.sh"
	namespace = "per-node"
	release   = "pernode"
	store     = "/var/lib/liken/per-node"
)

// kube is what all tests share, and nobody changes.
var kube *cluster.Cluster

// TestMain installs the driver as the documentation says. What a run that was cut
// off left behind is removed first.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bin, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(bin) }()
	if kube, err = cluster.Connect(root, bin); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := install(); err != nil {
		fmt.Println(err)
		state, _ := kube.Try("", "kubectl", "--namespace", namespace, "describe", "pods")
		logs, _ := kube.Try("", "kubectl", "--namespace", namespace, "logs", "daemonset/"+release, "--all-pods")
		fmt.Println(state + logs)
		return 1
	}
	if err := clearAway(); err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if err := errors.Join(clearAway(), uninstall()); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

// clearAway deletes what tests made, those of a run that was cut off too, and waits for
// it to go. Pods can end only while there is a plugin.
func clearAway() error {
	for _, kind := range []string{"namespaces", "persistentvolumes"} {
		if _, err := kube.Try("", "kubectl", "delete", kind, "--selector", "e2e", "--timeout=3m"); err != nil {
			return err
		}
	}
	return nil
}

// install runs the commands of the page, helm test among them.
func install() error {
	if err := uninstall(); err != nil {
		return err
	}
	fmt.Println("installing the driver")
	commands, err := page.Blocks(docs+"/install.md", "With Helm", "sh")
	if err != nil {
		return err
	}
	_, err = kube.Shell(commands[0])
	return err
}

// uninstall also removes the namespace, which the page's commands make.
func uninstall() error {
	if _, err := kube.Try("", "helm", "uninstall", release, "--namespace", namespace, "--ignore-not-found", "--wait"); err != nil {
		return err
	}
	_, err := kube.Try("", "kubectl", "delete", "namespace", namespace, "--ignore-not-found")
	return err
}
