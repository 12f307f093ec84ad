package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/pernode/internal/driver"
)

// node is a node of a cluster: a kubelet directory, a store and one plugin at a
// time.
type node struct {
	t          testing.TB
	kubeletDir string
	store      string
	api        *apiserver.Server // nil for a standalone plugin
	kubeconfig string
	plugin     *process
	kubelet    *kubelet.Kubelet
}

// newNode makes a node of a cluster that has a PersistentVolume for each of
// handles, named like it.
func newNode(t testing.TB, handles ...string) *node {
	t.Helper()
	n := newStandaloneNode(t)
	n.api = apiserver.New()
	n.kubeconfig = n.api.Kubeconfig(t)
	for _, h := range handles {
		n.api.PutVolume(apiserver.Volume(h, driver.Name, h))
	}
	return n
}

// newStandaloneNode makes a node whose plugin runs without an API server.
func newStandaloneNode(t testing.TB) *node {
	t.Helper()
	dir := mountns.SharedDir(t)
	return &node{t: t, kubeletDir: dir, store: filepath.Join(t.TempDir(), "store"), kubelet: &kubelet.Kubelet{Root: dir}}
}

// flags are those of a plugin of this node; a later flag wins over an earlier one.
func (n *node) flags(more ...string) []string {
	flags := []string{
		"--node-id", "node-1", "--store", n.store, "--kubelet-dir", n.kubeletDir, "--http", "127.0.0.1:0",
		"--endpoint", "unix://" + n.socket(),
	}
	if n.api == nil {
		flags = append(flags, "--standalone")
	} else {
		flags = append(flags, "--kubeconfig", n.kubeconfig)
	}
	return append(flags, more...)
}

func (n *node) socket() string {
	return filepath.Join(n.kubeletDir, "plugins", driver.Name, "csi.sock")
}

func (n *node) registrationSocket() string {
	return filepath.Join(n.kubeletDir, "plugins_registry", driver.Name+"-reg.sock")
}

// start starts the plugin and lets the kubelet register it.
func (n *node) start(more ...string) {
	n.t.Helper()
	n.startUnregistered(ownNamespace(), "022", more...)
	n.register()
}

func (n *node) startUnregistered(namespace *syscall.SysProcAttr, umask string, more ...string) {
	n.t.Helper()
	cmd := pluginCommand(n.flags(more...)...)
	cmd.Env = append(cmd.Env, umaskVariable+"="+umask)
	cmd.SysProcAttr = namespace
	n.plugin = startProcess(n.t, cmd)
}

func (n *node) register() {
	n.t.Helper()
	// A killed plugin leaves its socket, which nobody answers.
	n.plugin.awaitLog("offering registration to the kubelet")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	registered, err := kubelet.Register(ctx, n.kubeletDir, driver.Name)
	if err != nil {
		n.t.Fatalf("register the plugin: %v; its log:\n%s", err, n.plugin.log)
	}
	n.kubelet = registered
	n.t.Cleanup(func() { _ = registered.Close() })
}

func (n *node) copyDir(handle string) string { return filepath.Join(n.store, "copies", handle) }

// pod is the i-th pod of the node.
func pod(i int) kubelet.Pod {
	return kubelet.Pod{UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}
}

// volume is one whose PersistentVolume has the name of its handle.
func volume(handle string) kubelet.Volume {
	return kubelet.Volume{PV: handle, Handle: handle, AccessMode: corev1.ReadWriteOnce}
}

func readOnly(v kubelet.Volume) kubelet.Volume {
	v.ReadOnly = true
	return v
}

func (n *node) target(handle string, i int) string { return n.kubelet.Target(pod(i).UID, handle) }

func (n *node) publish(v kubelet.Volume, by kubelet.Pod) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := n.kubelet.Publish(ctx, v, by)
	return err
}

func (n *node) unpublish(v kubelet.Volume, by kubelet.Pod) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return n.kubelet.Unpublish(ctx, v, by)
}

// mustPublish publishes the volume of handle for the i-th pod.
func (n *node) mustPublish(handle string, i int) {
	n.t.Helper()
	wantCode(n.t, n.publish(volume(handle), pod(i)), codes.OK)
}

func (n *node) mustUnpublish(handle string, i int) {
	n.t.Helper()
	wantCode(n.t, n.unpublish(volume(handle), pod(i)), codes.OK)
}

func wantCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Fatalf("code %v, want %v; error: %v", got, want, err)
	}
}

// wantMounts checks how many mounts are at path, as the node sees it and as the
// plugin does.
func (n *node) wantMounts(path string, want int) {
	n.t.Helper()
	who := map[string]int{"the node": os.Getpid()}
	if !n.plugin.hasEnded() {
		who["the plugin"] = n.plugin.cmd.Process.Pid
	}
	for name, pid := range who {
		if got := mountsAt(n.t, pid, path); len(got) != want {
			n.t.Errorf("%s has %d mounts at %q, want %d", name, len(got), path, want)
		}
	}
}

func mountsAt(t testing.TB, pid int, path string) []*mountinfo.Info {
	t.Helper()
	table, err := os.Open(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	found, err := mountinfo.GetMountsFromReader(table, func(i *mountinfo.Info) (skip, stop bool) { return i.Mountpoint != path, false })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (n *node) wantCopies(want ...string) {
	n.t.Helper()
	if got := names(n.t, filepath.Join(n.store, "copies")); fmt.Sprint(got) != fmt.Sprint(want) {
		n.t.Errorf("the store has copies %q, want %q", got, want)
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantWords(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}
