package main

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/pernode/internal/driver"
)

// BenchmarkNode is what a node of pods that start all at once costs, and a plugin that is
// killed and started again while they have their volumes, and are published again as by a
// kubelet that was started again too. It is ready when each publish is answered, the kubelet
// and the probes have the plugin, and each PersistentVolume is watched.
func BenchmarkNode(b *testing.B) {
	for _, volumes := range []int{50, 250} {
		b.Run(fmt.Sprint(volumes), func(b *testing.B) {
			var all nodeCost
			rounds := 0
			for b.Loop() {
				all.add(costOfNode(b, volumes))
				rounds++
			}
			all.report(b, float64(rounds), float64(volumes))
		})
	}
}

// nodeCost sums what rounds cost.
type nodeCost struct {
	published, restarted               time.Duration // Until all was ready.
	used, usedAgain                    time.Duration // Of a processor.
	requests, requestsAgain            int           // To the API server.
	empty, anonymous, anonymousRestart int64         // Memory, without that of files.
}

func (c *nodeCost) add(o nodeCost) {
	c.published += o.published
	c.restarted += o.restarted
	c.used += o.used
	c.usedAgain += o.usedAgain
	c.requests += o.requests
	c.requestsAgain += o.requestsAgain
	c.empty += o.empty
	c.anonymous += o.anonymous
	c.anonymousRestart += o.anonymousRestart
}

func (c *nodeCost) report(b *testing.B, rounds, volumes float64) {
	b.ReportMetric(0, "ns/op") // What making the node costs is in it.
	for unit, value := range map[string]float64{
		"ms-ready":           float64(c.published.Milliseconds()),
		"ms-restarted":       float64(c.restarted.Milliseconds()),
		"µs-CPU/volume":      float64(c.used.Microseconds()) / volumes,
		"µs-CPU/restarted":   float64(c.usedAgain.Microseconds()) / volumes,
		"requests/volume":    float64(c.requests) / volumes,
		"requests/restarted": float64(c.requestsAgain) / volumes,
		"MiB":                float64(c.anonymous) / (1 << 20),
		"MiB-restarted":      float64(c.anonymousRestart) / (1 << 20),
		"KiB/volume":         float64(c.anonymous-c.empty) / volumes / (1 << 10),
	} {
		b.ReportMetric(value/rounds, unit)
	}
}

func costOfNode(b *testing.B, volumes int) (cost nodeCost) {
	b.Helper()
	n := newNode(b)
	handles := make([]string, volumes)
	for i := range handles {
		handles[i] = fmt.Sprintf("v%d", i)
		n.API.PutVolume(apiserver.Volume(handles[i], driver.Name, handles[i]))
	}
	n.Start()
	n.AwaitAnswer("/readyz", http.StatusOK, "ok")
	process.Await(b, "the first sweep", func() bool { return n.Figure("per_node_last_sweep_timestamp_seconds") > 0 })
	cost.empty = n.Plugin.Anonymous()
	used := n.Plugin.ProcessorTime()
	n.API.ForgetRequests()

	began := time.Now()
	n.publishAtOnce(handles)
	cost.published = time.Since(began)
	cost.used = n.Plugin.ProcessorTime() - used
	cost.requests, cost.anonymous = len(n.API.Requests()), n.Plugin.Anonymous()

	n.Plugin.Kill()
	process.Await(b, "its watches to end", func() bool { return n.API.Watches() == 0 })
	n.API.ForgetRequests()
	began = time.Now()
	n.Start()
	n.publishAtOnce(handles)
	n.AwaitAnswer("/readyz", http.StatusOK, "ok")
	cost.restarted, cost.usedAgain = time.Since(began), n.Plugin.ProcessorTime()
	cost.requestsAgain, cost.anonymousRestart = len(n.API.Requests()), n.Plugin.Anonymous()
	process.Await(b, "all copies to be counted as held", func() bool { return n.Figure("per_node_held_copies") == float64(volumes) })
	for i, handle := range handles {
		n.mustUnpublish(handle, i)
	}
	n.Plugin.Stop()
	return cost
}

// publishAtOnce publishes each volume for a pod of its own, all at a time, and waits until
// each is watched.
func (n *node) publishAtOnce(handles []string) {
	n.T.Helper()
	errs := make([]error, len(handles))
	var group sync.WaitGroup
	for i, handle := range handles {
		group.Go(func() { errs[i] = n.Publish(volume(handle), rig.Pod(i)) })
	}
	group.Wait()
	for _, err := range errs {
		rig.WantCode(n.T, err, codes.OK)
	}
	process.Await(n.T, "each PersistentVolume to be watched", func() bool { return n.API.Watches() == len(handles) })
}
