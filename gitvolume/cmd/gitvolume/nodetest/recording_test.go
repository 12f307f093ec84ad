package nodetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/gittest"
)

// recorded compares a scrape with a recording, in which each repository has the name of a
// forge's.
func (n *node) recorded(name, scrape string, remotes map[string]*gittest.Bare) {
	n.T.Helper()
	private := map[string]string{}
	for repository, remote := range remotes {
		private[remote.Dir] = "git.example.com/shop/" + repository + ".git"
	}
	page.CompareRecording(n.T, "testdata/"+name+".prom", scrape, private)
}

// claimed has the cluster know the volume, as a claim's of its name.
func (n *node) claimed(v kubelet.Volume) kubelet.Volume {
	n.API.PutVolume(apiserver.Volume(v.PV, driver.Name, v.Handle))
	return v
}

// from is the volume, of another repository.
func from(remote *gittest.Bare, v kubelet.Volume) kubelet.Volume {
	v.Attributes["url"] = "file://" + remote.Dir
	return v
}

// A node on which everything is well, and has happened once.
func TestRecordingOfAHealthyNode(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Put("main", map[string]string{"a": "1"})
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.Start()
	n.MustPublish(n.claimed(n.volume("config")), 1)
	target := n.MustPublish(n.written("notes", "notes"), 2)
	n.remote.Put("main", map[string]string{"b": "1"})
	write(t, target, "c", "1")
	process.Await(t, "what was written to arrive", func() bool { return n.has("c", "1") })
	for _, sample := range []string{
		`git_csi_volume_abnormal{claim="config",namespace="default",volume="config"} 0`,
		`git_csi_volume_abnormal{claim="notes",namespace="default",volume="notes"} 0`,
		`git_csi_unpushed_commits{claim="notes",namespace="default"} 0`,
		`git_csi_last_push_timestamp_seconds{claim="notes",namespace="default"}`,
		"git_csi_rebase_duration_seconds_count", "git_csi_store_bytes ",
	} {
		n.AwaitAnswer("/metrics", 200, sample)
	}
	_, scrape := n.Get("/metrics")
	n.recorded("healthy", scrape, map[string]*gittest.Bare{"config": n.remote})
}

// A node with a volume for each fault that has a series of its own, and more.
func TestRecordingOfAFaultyNode(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	remotes := map[string]*gittest.Bare{}
	targets := map[string]string{}
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.Start("--scan-every", "1s")
	for i, name := range []string{"diverged", "failing", "skipped", "degraded", "pending", "gone"} {
		remote := gittest.NewBare(t)
		remote.Put("main", map[string]string{"f": "1"})
		remotes[name] = remote
		v := n.written(name, "notes")
		switch name {
		case "pending":
			v = n.written(name, "")
		case "gone":
			v = n.claimed(n.volume(name))
		}
		targets[name] = n.MustPublish(from(remote, v), i)
	}

	remotes["diverged"].Put("main", map[string]string{"f": "theirs"})
	write(t, targets["diverged"], "f", "mine")
	remotes["failing"].Hook("pre-receive", "exit 1")
	write(t, targets["failing"], "f", "2")
	if err := unix.Mkfifo(filepath.Join(targets["skipped"], "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, targets["pending"], "g", "1")
	if err := os.Rename(remotes["gone"].Dir, remotes["gone"].Dir+".gone"); err != nil {
		t.Fatal(err)
	}

	refused := n.volume("refused")
	refused.Attributes["reff"] = "main"
	rig.WantCode(t, n.Publish(refused, rig.Pod(9)), codes.InvalidArgument)
	n.API.Inject(apiserver.Fault{Verb: "create", Resource: "events", Do: apiserver.Refuse(403)})
	rig.WantCode(t, n.Publish(refused, rig.Pod(10)), codes.InvalidArgument)

	for _, sample := range []string{
		`git_csi_diverged{claim="diverged",namespace="default"} 1`,
		`git_csi_volume_abnormal{claim="failing",namespace="default",volume="failing"} 1`,
		`git_csi_unpushed_commits{claim="failing",namespace="default"} 1`,
		`git_csi_skipped_files{claim="skipped",namespace="default"} 1`,
		`git_csi_pending_paths{claim="pending",namespace="default"} 1`,
		`git_csi_volume_abnormal{claim="gone",namespace="default",volume="gone"} 1`,
		`git_csi_last_push_timestamp_seconds{claim="diverged",namespace="default"}`, "git_csi_store_bytes ",
	} {
		n.AwaitAnswer("/metrics", 200, sample)
	}
	process.Await(t, "an Event to be dropped", func() bool { return n.Figure("csi_events_dropped_total") > 0 })
	n.recorded("faulty", n.degraded("degraded"), remotes)
}

// degraded changes a file of the volume by another name of it, of which no event tells,
// and returns the scrape that says so. It goes on until then: a scan that finds nothing
// takes it back.
func (n *node) degraded(handle string) (scrape string) {
	n.T.Helper()
	other := filepath.Join(n.Store, "other")
	if err := os.Link(filepath.Join(n.Store, "volumes", handle, "tree", "f"), other); err != nil {
		n.T.Fatal(err)
	}
	content := ""
	process.Await(n.T, "the watch to be degraded", func() bool {
		content += "x"
		if err := os.WriteFile(other, []byte(content), 0o644); err != nil {
			n.T.Fatal(err)
		}
		_, scrape = n.Get("/metrics")
		return strings.Contains(scrape, `git_csi_watch_degraded{claim="`+handle+`",namespace="default"} 1`)
	})
	return scrape
}

// A node whose store a reboot would empty, and is nearly full.
func TestRecordingOfAVolatileStore(t *testing.T) {
	mountns.Require(t)
	t.Parallel()
	n := newNode(t)
	n.inMemory("16m")
	n.Start()
	n.fill(15 << 20)
	n.AwaitAnswer("/metrics", 200, "git_csi_store_bytes ")
	_, scrape := n.Get("/metrics")
	n.recorded("volatile", scrape, nil)
}
