package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// The kubelet asks each minute what a volume uses. While the disk of its copy hangs no
// question costs one more thread, of which a process has only so many, and none keeps the
// plugin from ending.
func TestQuestionsAboutADiskThatHangs(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.Start()
	n.mustPublish("h1", 1)
	n.mustUnpublish("h1", 1)
	n.Plugin.Stop()
	rig.MountHung(t, n.copyDir("h1"))
	n.Start()
	n.mustPublish("h2", 2)
	ask := func(handle string, patience time.Duration, i int) codes.Code {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := n.Kubelet.Node().NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: handle, VolumePath: n.Target(handle, i)})
		return status.Code(err)
	}
	before := n.threads()
	const questions = 40
	for range questions {
		if code := ask("h1", 50*time.Millisecond, 1); code != codes.DeadlineExceeded && code != codes.Aborted {
			t.Fatalf("stats of the copy on the disk that hangs: %v", code)
		}
	}
	if now := n.threads(); now > before+questions/2 {
		t.Errorf("%d questions had the threads go from %d to %d", questions, before, now)
	}
	if code := ask("h2", process.Patience, 2); code != codes.OK && code != codes.Unavailable {
		t.Errorf("stats of another copy: %v", code)
	}
	n.mustUnpublish("h2", 2)
	n.Plugin.Signal(unix.SIGTERM)
	if code := n.Plugin.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// threads is how many the plugin has.
func (n *node) threads() (count int) {
	n.T.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Plugin.Pid()))
	if err != nil {
		n.T.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if number, is := strings.CutPrefix(line, "Threads:"); is {
			if _, err := fmt.Sscan(number, &count); err != nil {
				n.T.Fatal(err)
			}
		}
	}
	return count
}
