package nodetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
)

// Of each repository a node has so many volumes, of which every second is written to.
const (
	volumesPerRepository = 10
	filesPerRepository   = 200
)

// BenchmarkNode is what a node costs whose pods start all at once, and a plugin that is killed
// and started again while they have their volumes, all of which are published again as by a
// kubelet that was started again too. The remote and the API server are on the loopback, and
// share the machine.
func BenchmarkNode(b *testing.B) {
	for _, volumes := range []int{20, 200} {
		b.Run(fmt.Sprint(volumes), func(b *testing.B) {
			for b.Loop() {
				costOfNode(b, volumes)
			}
			b.ReportMetric(0, "ns/op") // What making the repositories costs is in it.
		})
	}
}

// costOfNode reports the last round's figures.
func costOfNode(b *testing.B, number int) {
	b.Helper()
	n := newClusterNode(b)
	urls, server := n.served(number/volumesPerRepository, filesPerRepository)
	volumes := make([]kubelet.Volume, number)
	for i := range volumes {
		name := fmt.Sprintf("v%d", i)
		n.API.PutVolume(apiserver.Volume(name, driver.Name, name))
		volumes[i] = kubelet.Volume{
			PV: name, Handle: name, AccessMode: corev1.ReadWriteOncePod,
			Attributes: map[string]string{"url": urls[i/volumesPerRepository]},
		}
		if i%2 == 1 {
			volumes[i].AccessMode, volumes[i].ReadOnly = corev1.ReadOnlyMany, true
		}
	}
	n.Start("--allow-insecure")
	empty := n.Plugin.Anonymous()

	report := func(phase string, start func(), do func(int) error) {
		n.API.ForgetRequests()
		asked := len(server.Requests())
		began := time.Now()
		start()
		n.allAtOnce(number, do)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), phase+"ms-ready")
		requests := n.requests() // It waits for the last of them, with what else follows a publish.
		for unit, value := range map[string]float64{
			"API-requests":       float64(requests),
			"fetches":            n.fetches(),
			"remote-requests":    float64(len(server.Requests()) - asked),
			"ms-own-CPU/volume":  float64(n.Plugin.ProcessorTime().Milliseconds()) / float64(number),
			"MiB-anonymous":      float64(n.Plugin.Anonymous()) / (1 << 20),
			"MiB-of-files":       float64(n.Plugin.OfFiles()) / (1 << 20),
			"KiB-anonymous/each": float64(n.Plugin.Anonymous()-empty) / float64(number) / (1 << 10),
		} {
			b.ReportMetric(value, phase+unit)
		}
	}
	report("", func() {}, func(i int) error { return n.Publish(volumes[i], rig.Pod(i)) })
	n.Plugin.Kill()
	start := func() {
		began := time.Now()
		n.Start("--allow-insecure")
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "restart:ms-registered")
	}
	report("restart:", start, func(i int) error {
		return n.Kubelet.Republish(context.Background(), volumes[i], rig.Pod(i))
	})
	for i, v := range volumes {
		n.MustUnpublish(v, i)
	}
	n.Plugin.Stop()
}

// allAtOnce does it for each volume, and again where it was not done in time, as a kubelet.
func (n *node) allAtOnce(number int, do func(int) error) {
	n.T.Helper()
	errs := make([]error, number)
	var group sync.WaitGroup
	for i := range number {
		group.Go(func() {
			for errs[i] = do(i); isTooEarly(errs[i]); errs[i] = do(i) {
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		rig.WantCode(n.T, err, codes.OK)
	}
}

func isTooEarly(err error) bool {
	code := status.Code(err)
	return code == codes.DeadlineExceeded || code == codes.Aborted
}

// requests are those that the API server got, once there are no more.
func (n *node) requests() (got int) {
	n.T.Helper()
	got = -1
	process.Await(n.T, "the last request to the API server", func() bool {
		before := got
		got = len(n.API.Requests())
		if got != before {
			time.Sleep(2 * time.Second)
		}
		return got == before
	})
	return got
}

// fetches are those that the plugin has made.
func (n *node) fetches() (made float64) {
	for _, series := range n.Scrape()["git_csi_fetch_duration_seconds"].GetMetric() {
		made += float64(series.GetHistogram().GetSampleCount())
	}
	return made
}
