// Package rig is a node of a cluster for the tests of a node plugin as the process that it
// is: a kubelet directory on a shared mount, a store, a stand-in kubelet and, if the node is
// of a cluster, a stand-in API server.
//
// It must never know a driver, nor be kinder to a plugin than a node is.
package rig

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

// Config is in what one driver's plugin differs from another's.
type Config struct {
	Driver string // Its CSI name.
	// Command is the program with these arguments, not started.
	Command func(arguments ...string) *exec.Cmd
	// Arguments come before the flags that every plugin has.
	Arguments []string
}

// Node is a node with one plugin at a time.
type Node struct {
	T          testing.TB
	KubeletDir string
	Store      string
	API        *apiserver.Server // nil for a standalone plugin.
	Plugin     *process.Process  // nil before the first start.
	Kubelet    *kubelet.Kubelet
	config     Config
	kubeconfig string
}

// New makes a node whose plugin runs without an API server. The store is not made yet.
func New(t testing.TB, config Config) *Node {
	t.Helper()
	dir := mountns.SharedDir(t)
	return &Node{
		T: t, config: config, KubeletDir: dir, Store: filepath.Join(t.TempDir(), "store"),
		Kubelet: &kubelet.Kubelet{Root: dir},
	}
}

// JoinCluster has the plugins that are started from now on be of a cluster, which is empty.
func (n *Node) JoinCluster() {
	n.T.Helper()
	n.API = apiserver.New()
	n.kubeconfig = n.API.Kubeconfig(n.T)
}

// JoinClusterOf has them be of the cluster that another node is of.
func (n *Node) JoinClusterOf(other *Node) {
	n.API, n.kubeconfig = other.API, other.kubeconfig
}

// Arguments are those of a plugin of this node; a later flag wins over an earlier one.
func (n *Node) Arguments(more ...string) []string {
	arguments := append(append([]string{}, n.config.Arguments...),
		"--node-id", "node-1", "--store", n.Store, "--kubelet-dir", n.KubeletDir, "--http", "127.0.0.1:0",
		"--endpoint", "unix://"+n.Socket())
	if n.API == nil {
		arguments = append(arguments, "--standalone")
	} else {
		arguments = append(arguments, "--kubeconfig", n.kubeconfig)
	}
	return append(arguments, more...)
}

// Socket is the plugin's CSI socket.
func (n *Node) Socket() string {
	return filepath.Join(n.KubeletDir, "plugins", n.config.Driver, "csi.sock")
}

// RegistrationSocket is where the plugin offers itself to the kubelet.
func (n *Node) RegistrationSocket() string {
	return filepath.Join(n.KubeletDir, "plugins_registry", n.config.Driver+"-reg.sock")
}

// OwnNamespace starts a process as its container does: in a copy of the mount namespace, whose
// shared mounts are peers of the node's. (Cloneflags, because with Unshareflags the syscall
// package makes every mount private.)
func OwnNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
}

// Command is a plugin of this node, not started.
func (n *Node) Command(more ...string) *exec.Cmd {
	cmd := n.config.Command(n.Arguments(more...)...)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	// With -race a process waits a second at its end, and there are many here.
	cmd.Env = append(cmd.Env, "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=10")
	cmd.SysProcAttr = OwnNamespace()
	return cmd
}

// Start starts the plugin and lets the kubelet register it.
func (n *Node) Start(more ...string) {
	n.T.Helper()
	n.StartUnregistered(n.Command(more...))
	n.Register()
}

// StartUnregistered starts what Command gave. It has to end cleanly with the test, unless it
// has ended before.
func (n *Node) StartUnregistered(cmd *exec.Cmd) {
	n.T.Helper()
	n.Plugin = process.Start(n.T, cmd)
	n.T.Cleanup(n.Plugin.Stop)
}

// Register lets the kubelet register the plugin.
func (n *Node) Register() {
	n.T.Helper()
	// A killed plugin leaves its socket, which nobody answers.
	n.Plugin.AwaitLog("offering registration to the kubelet")
	ctx, cancel := n.call()
	defer cancel()
	registered, err := kubelet.Register(ctx, n.KubeletDir, n.config.Driver)
	if err != nil {
		n.T.Fatalf("register the plugin: %v", err)
	}
	n.Kubelet = registered
	n.T.Cleanup(func() { _ = registered.Close() })
}

// call bounds a call of the kubelet.
func (n *Node) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), process.Patience)
}
