package nodetest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/rig"
)

// A pod sees the repository, cannot write it, and sees what is pushed later.
func TestPublish(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.Start()
	n.AwaitAnswer("/readyz", 200, "ok")
	v := n.volume("v")
	target := n.MustPublish(v, 1)
	shows(t, target, "a", "1")
	if err := os.WriteFile(filepath.Join(target, "b"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("a pod that writes gets %v", err)
	}
	n.remote.Grow("main", "a", "2")
	shows(t, target, "a", "2")
	before := mounts(t, n.KubeletDir)
	n.MustPublish(v, 1)
	if after := mounts(t, n.KubeletDir); len(after) != len(before) {
		t.Errorf("a repeated publish makes of the mounts %v %v", before, after)
	}
	n.MustUnpublish(v, 1)
	if _, err := os.Lstat(target); err == nil {
		t.Error("the target is still there")
	}
	n.Plugin.Stop()
	if left, err := os.ReadDir(n.runtime); err != nil || len(left) > 0 {
		t.Errorf("the directory for sockets still has %v, %v", left, err)
	}
}

// What the flags do not allow is refused, in words that name them.
func TestFlagsBoundWhatIsReached(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start("--allow-local-urls=false", "--allow-url", "git.example.com")
	rig.WantCode(t, n.Publish(n.volume("v"), rig.Pod(1)), codes.InvalidArgument)
	rig.WantCode(t, n.Publish(n.volume("w", "url", "https://example.org/r"), rig.Pod(1)), codes.InvalidArgument)
	n.Plugin.AwaitLog("--allow-local-urls")
	n.Plugin.AwaitLog("--allow-url")
}

// Who writes a password into a URL is refused, and reads it in no log.
func TestAPasswordInAURLIsNotLogged(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start()
	rig.WantCode(t, n.Publish(n.volume("v", "url", "https://me:hunter2@git.example.com/r"), rig.Pod(1)), codes.InvalidArgument)
	n.Plugin.AwaitLog("served a call")
	n.Plugin.AwaitLog("***@git.example.com")
	n.Plugin.Stop()
	if log := n.Plugin.Log.String(); strings.Contains(log, "hunter2") {
		t.Errorf("the log has it:\n%s", log)
	}
}

func TestOtherAccessModesAreRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.Start()
	for _, mode := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany} {
		v := n.volume("v")
		v.AccessMode, v.ReadOnly = mode, false
		err := n.Publish(v, rig.Pod(1))
		rig.WantCode(t, err, codes.InvalidArgument)
		if words := string(mode) + " is not served: write accessModes: [ReadWriteOncePod] for a volume that one pod writes"; !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", mode, err, words)
		}
	}
}
