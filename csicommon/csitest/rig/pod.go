package rig

import (
	"fmt"
	"os"
	"testing"

	"github.com/moby/sys/mountinfo"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/kubelet"
)

// Pod is the i-th pod of a node.
func Pod(i int) kubelet.Pod {
	return kubelet.Pod{UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}
}

// Target is where the i-th pod has the PersistentVolume.
func (n *Node) Target(pv string, i int) string { return n.Kubelet.Target(Pod(i).UID, pv) }

// Publish stages and publishes the volume as the kubelet does.
func (n *Node) Publish(v kubelet.Volume, by kubelet.Pod) error {
	ctx, cancel := n.call()
	defer cancel()
	_, err := n.Kubelet.Publish(ctx, v, by)
	return err
}

// Unpublish takes the volume from the pod. It stays staged.
func (n *Node) Unpublish(v kubelet.Volume, by kubelet.Pod) error {
	ctx, cancel := n.call()
	defer cancel()
	return n.Kubelet.Unpublish(ctx, v, by)
}

// MustPublish publishes the volume for the i-th pod, and returns the target.
func (n *Node) MustPublish(v kubelet.Volume, i int) (target string) {
	n.T.Helper()
	WantCode(n.T, n.Publish(v, Pod(i)), codes.OK)
	return n.Target(v.PV, i)
}

// MustUnpublish takes the volume from the i-th pod, which is the last one of the node: it is
// unstaged too.
func (n *Node) MustUnpublish(v kubelet.Volume, i int) {
	n.T.Helper()
	WantCode(n.T, n.Unpublish(v, Pod(i)), codes.OK)
	ctx, cancel := n.call()
	defer cancel()
	WantCode(n.T, n.Kubelet.Unstage(ctx, v), codes.OK)
}

// WantCode wants the answer of a call to have the code.
func WantCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Fatalf("code %v, want %v; error: %v", got, want, err)
	}
}

// MountsAt are the mounts at a path, as the process of that id sees them.
func MountsAt(t testing.TB, pid int, path string) []*mountinfo.Info {
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

// WantMounts wants so many mounts at a path, as the node sees it and as the plugin does.
func (n *Node) WantMounts(path string, want int) {
	n.T.Helper()
	who := map[string]int{"the node": os.Getpid()}
	if !n.Plugin.HasEnded() {
		who["the plugin"] = n.Plugin.Pid()
	}
	for name, pid := range who {
		if got := MountsAt(n.T, pid, path); len(got) != want {
			n.T.Errorf("%s has %d mounts at %q, want %d", name, len(got), path, want)
		}
	}
}
