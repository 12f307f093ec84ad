package nodetest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/gittest"
)

// endBound is far below the minute after which a silent server is given up, and the two
// minutes that the kubelet waits for an answer.
const endBound = 30 * time.Second

// A plugin that is to end commits and pushes what a pod wrote although another still waits
// for its volume, whose server sends nothing: before that wait is over the kubelet would
// kill it.
func TestTheEndWaitsForNoFirstPublish(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]func(n *node) kubelet.Volume{
		"to read":  func(n *node) kubelet.Volume { return n.volume("slow") },
		"to write": func(n *node) kubelet.Volume { return n.written("slow", "notes") },
		"in its stage": func(n *node) kubelet.Volume {
			v := n.written("slow", "notes")
			n.names("slow", "one", "one")
			v.StageSecret, v.PublishSecret = token, token
			return v
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, silent := newClusterNode(t), gittest.Silent(t)
			n.remote.Grow("main", "a", "1")
			n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "10m"}) // The end alone pushes.
			n.Start("--allow-insecure")
			target := n.MustPublish(n.written("v", "notes"), 1)
			late := slow(n)
			late.Attributes["url"] = "http://" + silent.Address + "/r"
			answered := make(chan error, 1)
			go func() { answered <- n.Publish(late, rig.Pod(2)) }()
			process.Await(t, "the server to be asked", func() bool { return silent.Accepted() > 0 })
			write(t, target, "b", "1")
			began := time.Now()
			n.Plugin.End(unix.SIGTERM, 0)
			if took := time.Since(began); took > endBound {
				t.Errorf("the end took %s, want at most %s", took, endBound)
			}
			if !n.has("b", "1") {
				t.Error("the end did not push what was written")
			}
			rig.WantCode(t, <-answered, codes.Aborted)
		})
	}
}
