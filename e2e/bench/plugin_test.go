package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
)

const driverName = "per-node.liken.sh"

// startTimeout bounds the start of a plugin, and patience each wait for it.
const (
	startTimeout = 30 * time.Second
	patience     = 60 * time.Second
)

// build compiles the per-node plugin as it is shipped and returns the binary. A
// binary that lies around would be measured long after the code had changed.
func build(b *testing.B) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "pernode")
	command := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", binary, "./cmd/pernode")
	command.Dir = filepath.Join("..", "..", "pernode")
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("build the plugin: %v\n%s", err, output)
	}
	return binary
}

// plugin is a running per-node plugin and the kubelet of its node.
type plugin struct {
	*kubelet.Kubelet
	cluster *apiserver.Server
	store   string
	pid     int
}

// start runs the plugin for the kubelet directory root, with its copies in store,
// until the benchmark ends. It sees the mounts there are now, and later ones below root only, as a
// container does.
func start(b *testing.B, binary, root, store string, cluster *apiserver.Server) *plugin {
	b.Helper()
	p := &plugin{cluster: cluster, store: store}
	sockets := filepath.Join(root, "plugins", driverName)
	for _, dir := range []string{sockets, filepath.Join(root, "plugins_registry")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	command := exec.Command(binary, "--node-id=node-1", "--http=", "--store="+p.store, "--kubelet-dir="+root,
		"--endpoint=unix://"+filepath.Join(sockets, "csi.sock"), "--kubeconfig="+cluster.Kubeconfig(b))
	command.Stderr = log
	command.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	p.pid = command.Process.Pid
	b.Cleanup(func() { stop(b, command, log) })
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if p.Kubelet, err = kubelet.Register(ctx, root, driverName); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close() })
	return p
}

func stop(b *testing.B, command *exec.Cmd, log *os.File) {
	defer log.Close()
	err := command.Process.Signal(unix.SIGTERM)
	if err == nil {
		err = command.Wait()
	}
	if err == nil && !b.Failed() {
		return
	}
	content, _ := os.ReadFile(log.Name())
	b.Errorf("the plugin ended: %v; the end of its log:\n%s", err, content[max(0, len(content)-4<<10):])
}

// volume adds the n-th volume to the cluster and returns how a pod uses it.
func (p *plugin) volume(name string, n int) kubelet.Volume {
	name = fmt.Sprintf("%s-%d", name, n)
	p.cluster.PutVolume(apiserver.Volume(name, driverName, name))
	return kubelet.Volume{PV: name, Handle: name, AccessMode: "ReadWriteOnce"}
}

func pod(n int) kubelet.Pod {
	return kubelet.Pod{UID: fmt.Sprintf("8c1d4c2e-6e5f-4c1b-9a55-%012d", n), Namespace: "default", Name: fmt.Sprintf("db-%d", n)}
}

func (p *plugin) publish(b *testing.B, v kubelet.Volume, pod kubelet.Pod) string {
	b.Helper()
	target, err := p.Publish(context.Background(), v, pod)
	if err != nil {
		b.Fatalf("publish: %v", err)
	}
	return target
}

func (p *plugin) unpublish(b *testing.B, v kubelet.Volume, pod kubelet.Pod) {
	b.Helper()
	if err := p.Unpublish(context.Background(), v, pod); err != nil {
		b.Fatalf("unpublish: %v", err)
	}
}

// await waits until done is true.
func await(b *testing.B, what string, done func() bool) {
	b.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("waited %s in vain: %s", patience, what)
		}
	}
}
