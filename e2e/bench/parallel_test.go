package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/mountns"
)

// each is how many times a caller publishes and unpublishes in one turn.
const each = 50

func makeDir(b *testing.B, dir string) {
	b.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPublishParallel counts the publish and unpublish pairs a second of
// different volumes, by the number of callers.
func BenchmarkPublishParallel(b *testing.B) {
	root := mountns.SharedDir(b)
	p := start(b, build(b), root, b.TempDir(), apiserver.New())
	callers := []int{1, 4, 16}
	var volumes []kubelet.Volume
	for n := range callers[len(callers)-1] {
		volumes = append(volumes, p.volume("data", n))
		p.publish(b, volumes[n], pod(n))
		p.unpublish(b, volumes[n], pod(n))
	}
	took, turns := make(map[int]time.Duration), 0
	for b.Loop() {
		turns++
		for _, count := range callers {
			start := time.Now()
			p.together(b, volumes[:count])
			took[count] += time.Since(start)
		}
	}
	hideTotal(b)
	for _, count := range callers {
		b.ReportMetric(float64(turns*count*each)/took[count].Seconds(), fmt.Sprintf("pairs/s-by-%d", count))
	}
}

// together has one caller for each volume.
func (p *plugin) together(b *testing.B, volumes []kubelet.Volume) {
	var group sync.WaitGroup
	for n, v := range volumes {
		group.Go(func() {
			for range each {
				if _, err := p.Publish(b.Context(), v, pod(n)); err != nil {
					b.Errorf("publish: %v", err)
				}
				if err := p.Unpublish(b.Context(), v, pod(n)); err != nil {
					b.Errorf("unpublish: %v", err)
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkPublishBesideStuck times publishes of one volume while calls for another
// one wait inside the plugin: its mount is in use, so that its unpublish holds its
// locks for as long as the plugin is patient.
func BenchmarkPublishBesideStuck(b *testing.B) {
	root := mountns.SharedDir(b)
	p := start(b, build(b), root, b.TempDir(), apiserver.New())
	free, stuck := p.volume("free", 0), p.volume("stuck", 0)
	busy, err := os.Create(filepath.Join(p.publish(b, stuck, pod(1)), "in-use"))
	if err != nil {
		b.Fatal(err)
	}
	p.publish(b, free, pod(0))
	p.unpublish(b, free, pod(0))
	var alone, beside, waiting samples
	pair := func() { p.publish(b, free, pod(0)); p.unpublish(b, free, pod(0)) }
	for b.Loop() {
		for range perPeer {
			alone.time(pair)
		}
		done := make(chan error)
		began := time.Now()
		go func() { done <- p.Unpublish(b.Context(), stuck, pod(1)) }()
		for waits := true; waits; {
			took := samples{}
			took.time(pair)
			select {
			case err := <-done:
				waits = false
				waiting = append(waiting, time.Since(began))
				if err == nil {
					b.Fatal("a volume in use was unpublished")
				}
			default:
				beside = append(beside, took...)
			}
		}
	}
	hideTotal(b)
	alone.report(b, "alone")
	beside.report(b, "beside")
	b.ReportMetric(float64(waiting.p50().Microseconds()), "stuck-p50-µs")
	if err := busy.Close(); err != nil {
		b.Fatal(err)
	}
	p.unpublish(b, stuck, pod(1))
}
