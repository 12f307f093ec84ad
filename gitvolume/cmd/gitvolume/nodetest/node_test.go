package nodetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/gittest"
)

// node is a node of a cluster: a kubelet directory, a store, one plugin at a time, and a
// repository on the same machine.
type node struct {
	*rig.Node
	runtime string
	path    string // Where programs are looked for first; empty: as always.
	remote  *gittest.Bare
}

// newNode makes a node whose plugin runs without an API server.
func newNode(t testing.TB) *node {
	t.Helper()
	runtime, err := os.MkdirTemp("/tmp", "gv") //nolint:usetesting // Sockets have short names.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	n := &node{runtime: runtime, remote: gittest.NewBare(t)}
	n.Node = rig.New(t, rig.Config{
		Driver: driver.Name, Command: n.program, Arguments: []string{"node", "--allow-local-urls", "--min-free", "0"},
	})
	return n
}

// newClusterNode makes a node of a cluster that has no PersistentVolume.
func newClusterNode(t testing.TB) *node {
	t.Helper()
	n := newNode(t)
	n.JoinCluster()
	return n
}

// program is the program that TestMain built.
func (n *node) program(arguments ...string) *exec.Cmd {
	process.DependsOnDrivers()
	cmd := exec.Command(os.Getenv(programVariable), arguments...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+n.runtime)
	if n.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+n.path+":"+os.Getenv("PATH"))
	}
	return cmd
}

// volume is a read-only claim's of the node's repository, followed as often as can be.
func (n *node) volume(handle string, more ...string) kubelet.Volume {
	attributes := map[string]string{"url": "file://" + n.remote.Dir, "pull": "1s"}
	for i := 0; i+1 < len(more); i += 2 {
		attributes[more[i]] = more[i+1]
	}
	return kubelet.Volume{PV: handle, Handle: handle, AccessMode: corev1.ReadOnlyMany, ReadOnly: true, Attributes: attributes}
}

// shows waits until a pod sees the file with the content.
func shows(t testing.TB, target, file, content string) {
	t.Helper()
	process.Await(t, file+" to have "+content, func() bool {
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
	n.T.Helper()
	process.Await(n.T, fmt.Sprintf("the %s to be told %s with %q", kind, reason, words), func() bool {
		return slices.ContainsFunc(n.API.Events("default"), func(e corev1.Event) bool {
			return e.InvolvedObject.Kind == kind && e.Reason == reason && strings.Contains(e.Message, words)
		})
	})
}
