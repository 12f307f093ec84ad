// Package cluster is what the end-to-end tests have of the Kubernetes they run
// against: a client, the commands a person would type, the nodes' own insides, and
// waiting for what takes its time. And what the tests of every driver do: install it as
// its page says, make pods, read Events, replace the plugin.
//
// It must never know a driver but by what that driver's tests say of it.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a running one.
type Cluster struct {
	Client kubernetes.Interface
	// Nodes are the names of the nodes in order, at least two.
	Nodes []string
	// root is the repository's, in which the documentation's commands are run.
	root string
	// path is the PATH of commands, with helm as the repository pins it.
	path  string
	nodes *turns
}

// Connect reads KUBECONFIG. It puts helm into dir, which the caller deletes when
// it is done with the cluster.
func Connect(root, dir string) (*Cluster, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	file := os.Getenv("KUBECONFIG")
	if file == "" {
		return nil, errors.New("KUBECONFIG is not set: run `make e2e`, or `eval \"$(bin/cluster env)\"` while the cluster runs")
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		return nil, fmt.Errorf("kubectl is not in the PATH: run `eval \"$(bin/cluster env)\"`: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	// Parallel tests share the client; its default of 5 requests a second would make
	// them wait for each other.
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	nodes, err := nodeNames(client)
	if err != nil {
		return nil, err
	}
	if err := linkHelm(root, dir); err != nil {
		return nil, err
	}
	return &Cluster{Client: client, Nodes: nodes, root: root, path: dir + ":" + os.Getenv("PATH"), nodes: newTurns()}, nil
}

// linkHelm has commands find the helm that `make bin/helm` built, and no other program
// beside it.
func linkHelm(root, dir string) error {
	built := filepath.Join(root, "bin/helm")
	if _, err := os.Stat(built); err != nil {
		return fmt.Errorf("run `make bin/helm` first: %w", err)
	}
	if err := os.Symlink(built, filepath.Join(dir, "helm")); err != nil {
		return fmt.Errorf("put helm in place: %w", err)
	}
	return nil
}

// nodeNames come in the API server's order, which is that of names.
func nodeNames(client kubernetes.Interface) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	if len(names) < 2 {
		return nil, fmt.Errorf("the cluster has the nodes %q, want at least two", names)
	}
	return names, nil
}

// Try runs a command with that standard input in the repository's root, and returns
// what it wrote, complaints included in the error.
func (c *Cluster) Try(input string, argv ...string) (string, error) {
	command := exec.Command(argv[0], argv[1:]...)
	// The PATH of this process knows no helm.
	if argv[0] == "helm" {
		command = exec.Command("env", argv...)
	}
	command.Dir = c.root
	command.Env = append(os.Environ(), "PATH="+c.path)
	command.Stdin = strings.NewReader(input)
	text, err := output(command)
	if err != nil {
		return text, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return text, nil
}

// Run is Try for a command that has to succeed.
func (c *Cluster) Run(t testing.TB, argv ...string) string {
	t.Helper()
	text, err := c.Try("", argv...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Shell runs a block of the documentation as a person would who copies it, and
// stops at the first command that fails.
func (c *Cluster) Shell(script string) (string, error) {
	return c.Try(script, "bash", "-eu", "-o", "pipefail", "-s")
}

// MustShell is Shell for a block that has to succeed.
func (c *Cluster) MustShell(t testing.TB, script string) string {
	t.Helper()
	text, err := c.Shell(script)
	if err != nil {
		t.Fatalf("%v, from\n%s", err, script)
	}
	return text
}

// Apply has kubectl apply manifests.
func (c *Cluster) Apply(t testing.TB, manifests string) {
	t.Helper()
	if _, err := c.Try(manifests, "kubectl", "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// output keeps the two apart: a warning is not part of an answer.
func output(command *exec.Cmd) (string, error) {
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, bytes.TrimSpace(append(out.Bytes(), complaint.Bytes()...)))
	}
	return out.String(), nil
}
