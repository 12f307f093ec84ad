package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/kubelet"
)

const perNodeDriver = "per-node.liken.sh"

// perNode is the state of the story between its steps.
type perNode struct {
	*narrator
	bin, dir string
	http     string
	plugin   *plugin
	kubelet  *kubelet.Kubelet
	volume   kubelet.Volume
}

func (s *perNode) path(below ...string) string {
	return filepath.Join(append([]string{s.dir}, below...)...)
}

func pod(name string) kubelet.Pod {
	return kubelet.Pod{UID: "uid-of-" + name, Namespace: "shop", Name: name}
}

func tellPerNode(ctx context.Context, n *narrator, bin, dir string) (err error) {
	s := &perNode{narrator: n, bin: bin, dir: dir, volume: kubelet.Volume{
		PV: "pv-orders", Handle: "orders", AccessMode: corev1.ReadWriteMany,
	}}
	if s.http, err = freeAddress(); err != nil {
		return err
	}
	if err := shareKubeletDir(s.path("kubelet")); err != nil {
		return err
	}
	defer func() {
		if s.plugin != nil {
			err = s.plugin.abandon(err)
		}
	}()
	for _, step := range []func(context.Context) error{
		s.start, s.firstPod, s.secondPodRefused, s.firstPodEnds, s.secondPod, s.readOnlyPod,
		s.crash, s.badHandle, s.store, s.statsAndHealth, s.metrics, s.stop,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shareKubeletDir makes what is mounted below dir reach the containers, as on a
// node; a driver refuses to publish anywhere else.
func shareKubeletDir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %q on itself: %w", dir, err)
	}
	if err := unix.Mount("none", dir, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("share %q: %w", dir, err)
	}
	return nil
}

// launch starts the plugin and registers it, as the kubelet does.
func (s *perNode) launch(ctx context.Context) (err error) {
	socket := s.path("kubelet", "plugins", perNodeDriver, "csi.sock")
	s.plugin, err = startPlugin(filepath.Join(s.bin, "pernode"), "--standalone", "--node-id", "this-node",
		"--store", s.path("store"), "--kubelet-dir", s.path("kubelet"), "--endpoint", "unix://"+socket, "--http", s.http)
	if err != nil {
		return err
	}
	// Not before: a killed plugin leaves its socket behind, which nobody answers on.
	if err := s.plugin.awaitLine(ctx, "offering registration to the kubelet"); err != nil {
		return err
	}
	s.kubelet, err = kubelet.Register(ctx, s.path("kubelet"), perNodeDriver)
	return err
}

func (s *perNode) start(ctx context.Context) error {
	s.step("The node plugin starts, without an API server, and registers with the kubelet")
	s.asked("pernode --standalone --node-id this-node --store store --kubelet-dir kubelet")
	if err := s.launch(ctx); err != nil {
		return err
	}
	info, err := s.kubelet.Node().NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		return err
	}
	s.got("%s is registered on node %q", perNodeDriver, info.GetNodeId())
	return equal("the node", info.GetNodeId(), "this-node")
}

// publish asks for the volume for a pod and says what came back.
func (s *perNode) publish(ctx context.Context, p kubelet.Pod, v kubelet.Volume, want codes.Code, words ...string) error {
	how := ""
	if v.ReadOnly {
		how = ", read-only"
	}
	s.asked("publish volume %q for pod %s/%s%s", v.Handle, p.Namespace, p.Name, how)
	_, err := s.kubelet.Publish(ctx, v, p)
	return s.answered(err, want, words...)
}

func (s *perNode) unpublish(ctx context.Context, p kubelet.Pod) error {
	s.asked("unpublish volume %q for pod %s/%s", s.volume.Handle, p.Namespace, p.Name)
	if err := s.answered(s.kubelet.Unpublish(ctx, s.volume, p), codes.OK); err != nil {
		return err
	}
	if _, err := os.Lstat(s.kubelet.Target(p.UID, s.volume.PV)); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the target of pod %s should be gone, looking at it gives %w", p.Name, err)
	}
	return nil
}

// greeting is the volume's one file as the pod sees it.
func (s *perNode) greeting(p kubelet.Pod) string {
	return filepath.Join(s.kubelet.Target(p.UID, s.volume.PV), "greeting")
}

func (s *perNode) firstPod(ctx context.Context) error {
	s.step("A pod gets its volume: a directory of this node, made now")
	if err := s.publish(ctx, pod("first"), s.volume, codes.OK); err != nil {
		return err
	}
	s.asked("as the pod: write %q into file greeting", "hello")
	if err := os.WriteFile(s.greeting(pod("first")), []byte("hello"), 0o600); err != nil {
		return err
	}
	kept, err := os.ReadFile(s.path("store", "copies", "orders", "greeting"))
	if err != nil {
		return err
	}
	s.got("store/copies/orders/greeting holds %q", kept)
	return equal("the file in the store", string(kept), "hello")
}

func (s *perNode) secondPodRefused(ctx context.Context) error {
	s.step("A second pod on the node is refused: one pod a node, and the holder is named")
	err := s.publish(ctx, pod("second"), s.volume, codes.FailedPrecondition, `volume "orders" is held`, "by pod shop/first")
	if err != nil {
		return err
	}
	event := ""
	for line := range strings.Lines(s.plugin.log.String()) {
		if strings.Contains(line, "msg=event") {
			event = line
		}
	}
	reason := regexp.MustCompile(`reason=\S+`).FindString(event)
	s.got("an Event on pod shop/second, %s", reason)
	return holds("the Event", event, "reason=PerNodeVolumeHeld", "pod=shop/second")
}

func (s *perNode) firstPodEnds(ctx context.Context) error {
	s.step("The first pod ends: its mount goes, the node's copy stays")
	if err := s.unpublish(ctx, pod("first")); err != nil {
		return err
	}
	kept, err := os.ReadFile(s.path("store", "copies", "orders", "greeting"))
	if err != nil {
		return err
	}
	s.got("store/copies/orders/greeting still holds %q", kept)
	return equal("the file in the store", string(kept), "hello")
}

func (s *perNode) secondPod(ctx context.Context) error {
	s.step("Now the second pod gets it, with what the first one wrote")
	if err := s.publish(ctx, pod("second"), s.volume, codes.OK); err != nil {
		return err
	}
	found, err := os.ReadFile(s.greeting(pod("second")))
	if err != nil {
		return err
	}
	s.got("as the pod: greeting holds %q", found)
	if err := equal("what the pod reads", string(found), "hello"); err != nil {
		return err
	}
	return s.unpublish(ctx, pod("second"))
}

func (s *perNode) readOnlyPod(ctx context.Context) error {
	s.step("A pod that asks for it read-only cannot write")
	readOnly := s.volume
	readOnly.ReadOnly = true
	if err := s.publish(ctx, pod("reader"), readOnly, codes.OK); err != nil {
		return err
	}
	s.asked("as the pod: write into file greeting")
	err := os.WriteFile(s.greeting(pod("reader")), []byte("bye"), 0o600)
	if !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("writing gave %w, it should have been %w", err, unix.EROFS)
	}
	s.got("%v", unix.EROFS)
	return nil
}

func (s *perNode) crash(ctx context.Context) error {
	s.step("The plugin crashes and comes back: the pod keeps its mount, the hold is known")
	s.asked("kill -9, and start it again")
	// It ends by the signal, which is an error and wanted.
	if err := s.plugin.stop(ctx, syscall.SIGKILL); err == nil {
		return errors.New("the killed plugin ended without an error")
	}
	if err := s.kubelet.Close(); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	found, err := os.ReadFile(s.greeting(pod("reader")))
	if err != nil {
		return err
	}
	s.got("registered again; as the pod: greeting holds %q", found)
	return s.publish(ctx, pod("second"), s.volume, codes.FailedPrecondition, "by pod shop/reader")
}

func (s *perNode) badHandle(ctx context.Context) error {
	s.step("A handle that is no name below the store is refused, and the broken rule named")
	bad := kubelet.Volume{PV: "pv-bad", Handle: "../../etc", AccessMode: corev1.ReadWriteMany}
	return s.publish(ctx, pod("third"), bad, codes.InvalidArgument, "a handle is one path component")
}

func (s *perNode) store(context.Context) error {
	s.step("What the store looks like")
	var lines []string
	root := s.path("store")
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%s  %s", info.Mode(), strings.TrimPrefix(path, s.dir+"/")))
		return nil
	})
	if err != nil {
		return err
	}
	s.got("%s", strings.Join(lines, "\n"))
	hold, err := os.ReadFile(filepath.Join(root, "holds", "orders"))
	if err != nil {
		return err
	}
	s.got("holds/orders says %s", hold)
	return errors.Join(
		holds("the store", strings.Join(lines, "\n"), "drwx------  store\n", "drwxrwxrwx  store/copies/orders\n", "store/trash"),
		holds("the hold", string(hold), `"podName":"reader"`, `"readOnly":true`))
}

func (s *perNode) statsAndHealth(ctx context.Context) error {
	s.step("What the kubelet learns about the volume")
	s.asked("NodeGetVolumeStats")
	stats, err := s.kubelet.Node().NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{
		VolumeId: s.volume.Handle, VolumePath: s.kubelet.Target(pod("reader").UID, s.volume.PV),
	})
	if err != nil {
		return err
	}
	for _, usage := range stats.GetUsage() {
		s.got("%s: %d used by the copy, %d of %d available", strings.ToLower(usage.GetUnit().String()),
			usage.GetUsed(), usage.GetAvailable(), usage.GetTotal())
	}
	s.asked("NodeGetVolumeHealth")
	health, err := s.kubelet.Node().NodeGetVolumeHealth(ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: s.volume.Handle})
	if err != nil {
		return err
	}
	wrong := len(health.GetVolumeHealth().GetHealthStatuses())
	s.got("%d things wrong with volume %q", wrong, health.GetVolumeHealth().GetVolumeId())
	// A full disk under the demo is no fault of the driver's, and it is right to say so.
	if slices.ContainsFunc(health.GetVolumeHealth().GetHealthStatuses(), func(h *csi.VolumeHealth_VolumeHealthEntry) bool {
		return h.GetReason() != "StoreFull"
	}) {
		return fmt.Errorf("the volume should be well: %v", health)
	}
	return equal("the number of figures", len(stats.GetUsage()), 2)
}

func (s *perNode) metrics(ctx context.Context) error {
	s.step("What an operator sees")
	for _, page := range []string{"healthz", "readyz"} {
		s.asked("GET /%s", page)
		body, err := fetch(ctx, "http://"+s.http+"/"+page)
		if err != nil {
			return err
		}
		s.got("%s", strings.TrimSpace(body))
	}
	s.asked("GET /metrics, of which")
	body, err := fetch(ctx, "http://"+s.http+"/metrics")
	if err != nil {
		return err
	}
	interesting := regexp.MustCompile(`(?m)^(per_node_(copies|held_copies|copy_bytes|publish_refusals_total)|csi_plugin_operations_seconds_count\S*NodePublish).*$`)
	lines := strings.Join(interesting.FindAllString(body, -1), "\n")
	s.got("%s", lines)
	return holds("the metrics", lines+"\n", "per_node_copies 1\n", "per_node_held_copies 1\n",
		`per_node_publish_refusals_total{reason="PerNodeVolumeHeld"} 1`, `per_node_publish_refusals_total{reason="PerNodeVolumeRefused"} 1`)
}

func (s *perNode) stop(ctx context.Context) error {
	s.step("The last pod ends, and the plugin is asked to stop")
	if err := s.unpublish(ctx, pod("reader")); err != nil {
		return err
	}
	s.asked("SIGTERM")
	if err := errors.Join(s.plugin.stop(ctx, syscall.SIGTERM), s.kubelet.Close()); err != nil {
		return err
	}
	s.got("exit code %d", s.plugin.process.ProcessState.ExitCode())
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	left := strings.Count(string(table), " "+s.path("kubelet", "pods")+"/")
	sockets, err := os.ReadDir(s.path("kubelet", "plugins_registry"))
	if err != nil {
		return err
	}
	s.got("%d mounts of pods left, %d registration sockets left", left, len(sockets))
	return errors.Join(equal("the number of mounts left", left, 0), equal("the number of sockets left", len(sockets), 0))
}
