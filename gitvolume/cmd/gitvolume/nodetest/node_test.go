package nodetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/gittest"
)

// node is a node of a cluster: a kubelet directory, a store, one plugin at a time, and a
// repository on the same machine.
type node struct {
	t          testing.TB
	kubeletDir string
	runtime    string
	store      string
	api        *apiserver.Server // nil for a standalone plugin
	kubeconfig string
	remote     *gittest.Bare
	plugin     *process
	kubelet    *kubelet.Kubelet
}

// newNode makes a node whose plugin runs without an API server.
func newNode(t testing.TB) *node {
	t.Helper()
	dir := mountns.SharedDir(t)
	runtime, err := os.MkdirTemp("/tmp", "gv") //nolint:usetesting // Sockets have short names.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	return &node{
		t: t, kubeletDir: dir, runtime: runtime, store: filepath.Join(t.TempDir(), "store"),
		remote: gittest.NewBare(t), kubelet: &kubelet.Kubelet{Root: dir},
	}
}

// newClusterNode makes a node of a cluster that has no PersistentVolume.
func newClusterNode(t testing.TB) *node {
	t.Helper()
	n := newNode(t)
	n.api = apiserver.New()
	n.kubeconfig = n.api.Kubeconfig(t)
	return n
}

// flags are those of a plugin of this node; a later flag wins over an earlier one.
func (n *node) flags(more ...string) []string {
	flags := []string{
		"node", "--node-id", "node-1", "--store", n.store, "--kubelet-dir", n.kubeletDir, "--http", "127.0.0.1:0",
		"--endpoint", "unix://" + n.socket(), "--allow-local-urls", "--min-free", "0",
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

func (n *node) command(arguments ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv(programVariable), arguments...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+n.runtime,
		// With -race a process waits a second at its end, and there are many here.
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=10")
	// As its container does: in a copy of the mount namespace, whose shared mounts are
	// peers of the node's. (With Unshareflags every mount would be made private.)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	return cmd
}

// start starts the plugin and lets the kubelet register it.
func (n *node) start(more ...string) {
	n.t.Helper()
	n.launch(n.command(n.flags(more...)...))
}

func (n *node) launch(cmd *exec.Cmd) {
	n.t.Helper()
	n.plugin = startProcess(n.t, cmd)
	// A killed plugin leaves its socket, which nobody answers.
	n.plugin.awaitLog("offering registration to the kubelet")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	registered, err := kubelet.Register(ctx, n.kubeletDir, driver.Name)
	if err != nil {
		n.t.Fatalf("register the plugin: %v", err)
	}
	n.kubelet = registered
	n.t.Cleanup(func() { _ = registered.Close() })
}

// pod is the i-th pod of the node.
func pod(i int) kubelet.Pod {
	return kubelet.Pod{UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}
}

// volume is a read-only claim's of the node's repository, followed as often as can be.
func (n *node) volume(handle string, more ...string) kubelet.Volume {
	attributes := map[string]string{"url": "file://" + n.remote.Dir, "pull": "1s"}
	for i := 0; i+1 < len(more); i += 2 {
		attributes[more[i]] = more[i+1]
	}
	return kubelet.Volume{PV: handle, Handle: handle, AccessMode: corev1.ReadOnlyMany, ReadOnly: true, Attributes: attributes}
}

func (n *node) publish(v kubelet.Volume, by kubelet.Pod) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := n.kubelet.Publish(ctx, v, by)
	return err
}

// mustPublish publishes the volume for the i-th pod and returns the target.
func (n *node) mustPublish(v kubelet.Volume, i int) (target string) {
	n.t.Helper()
	wantCode(n.t, n.publish(v, pod(i)), codes.OK)
	return n.kubelet.Target(pod(i).UID, v.PV)
}

func (n *node) mustUnpublish(v kubelet.Volume, i int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	wantCode(n.t, n.kubelet.Unpublish(ctx, v, pod(i)), codes.OK)
	wantCode(n.t, n.kubelet.Unstage(ctx, v), codes.OK)
}

func wantCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Fatalf("code %v, want %v; error: %v", got, want, err)
	}
}

// shows waits until a pod sees the file with the content.
func shows(t testing.TB, target, file, content string) {
	t.Helper()
	await(t, file+" to have "+content, func() bool {
		got, err := os.ReadFile(filepath.Join(target, file))
		return err == nil && string(got) == content
	})
}

// mounts are the ids of the mounts at or below the path, by where they are.
func mounts(t testing.TB, path string) map[string]int {
	t.Helper()
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(path))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, info := range infos {
		found[info.Mountpoint] = info.ID
	}
	return found
}

// told waits for an Event of the reason with these words, about an object of the kind.
func (n *node) told(kind, reason, words string) {
	n.t.Helper()
	await(n.t, fmt.Sprintf("the %s to be told %s with %q", kind, reason, words), func() bool {
		return slices.ContainsFunc(n.api.Events("default"), func(e corev1.Event) bool {
			return e.InvolvedObject.Kind == kind && e.Reason == reason && strings.Contains(e.Message, words)
		})
	})
}

// get returns what the plugin answers over HTTP.
func (n *node) get(path string) (code int, body string) {
	n.t.Helper()
	response, err := http.Get(n.plugin.address() + path)
	if err != nil {
		n.t.Fatalf("get %s: %v", path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		n.t.Fatalf("get %s: %v", path, err)
	}
	return response.StatusCode, string(data)
}

// awaitAnswer waits until the plugin answers so over HTTP.
func (n *node) awaitAnswer(path string, code int, words string) {
	n.t.Helper()
	await(n.t, fmt.Sprintf("%s to answer %d with %q", path, code, words), func() bool {
		got, body := n.get(path)
		return got == code && strings.Contains(body, words)
	})
}
