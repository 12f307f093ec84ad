package bench

import (
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/mountns"
)

// How often the plugin is timed for each time the peer is: the peer takes most of
// the run's time, and half a second for one bind and unbind among many mounts.
const (
	perPeer          = 5
	perPeerAmongMany = 50
)

// BenchmarkPublishUnpublish times a publish and the unpublish after it over the
// socket, of a volume that has its copy, beside the peer's bind and unbind: with
// the store and the kubelet directory where the tests' temporary files are, and
// in memory, where the disk's file system costs neither of the two anything (one
// that made and removed thousands of inodes in seconds takes its time to find the
// next). The aim is a peer-to-plugin ratio of 5 and more.
func BenchmarkPublishUnpublish(b *testing.B) {
	binary := build(b)
	b.Run("disk", func(b *testing.B) {
		comparePairs(b, binary, mountns.SharedDir(b), b.TempDir())
	})
	b.Run("memory", func(b *testing.B) {
		root := mountns.SharedDir(b)
		comparePairs(b, binary, inMemory(b, filepath.Join(root, "kubelet")), inMemory(b, filepath.Join(root, "store")))
	})
}

func comparePairs(b *testing.B, binary, root, store string) {
	p := start(b, binary, root, store, apiserver.New())
	other := newPeer(b, root)
	v := p.volume("data", 0)
	p.publish(b, v, pod(0))
	p.unpublish(b, v, pod(0))
	var ours, theirs samples
	for b.Loop() {
		for range perPeer {
			ours.time(func() { p.publish(b, v, pod(0)); p.unpublish(b, v, pod(0)) })
		}
		theirs.time(func() { other.bind(b); other.unbind(b) })
	}
	hideTotal(b)
	ours.report(b, "plugin")
	theirs.report(b, "peer")
	b.ReportMetric(ratio(theirs.p50(), ours.p50()), "peer/plugin")
}

// inMemory makes dir a file system in memory.
func inMemory(b *testing.B, dir string) string {
	b.Helper()
	makeDir(b, dir)
	if err := unix.Mount("bench", dir, "tmpfs", 0, ""); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkPublishAgain times a publish of what is published already, over the
// socket, as the kubelet repeats it.
func BenchmarkPublishAgain(b *testing.B) {
	root := mountns.SharedDir(b)
	p := start(b, build(b), root, b.TempDir(), apiserver.New())
	v := p.volume("data", 0)
	p.publish(b, v, pod(0))
	var again samples
	for b.Loop() {
		again.time(func() { p.publish(b, v, pod(0)) })
	}
	hideTotal(b)
	again.report(b, "again")
	p.unpublish(b, v, pod(0))
}

// BenchmarkPublishFirst times the first publish of volumes, which makes the copy
// and syncs its directory once, beside a later publish of the same volumes.
func BenchmarkPublishFirst(b *testing.B) {
	root := mountns.SharedDir(b)
	p := start(b, build(b), root, b.TempDir(), apiserver.New())
	var first, later samples
	for n := 0; b.Loop(); n++ {
		v := p.volume("data", n)
		first.time(func() { p.publish(b, v, pod(n)) })
		p.unpublish(b, v, pod(n))
		later.time(func() { p.publish(b, v, pod(n)) })
		p.unpublish(b, v, pod(n))
		// Else each turn would have one copy more to sweep than the one before.
		p.cluster.DeleteVolume(v.PV)
	}
	hideTotal(b)
	first.report(b, "first")
	later.report(b, "later")
}

// The numbers of mounts between which a publish may not slow down.
const (
	few  = 50
	many = 5000
)

// BenchmarkPublishAmongMounts times publishes on a node with few mounts and on
// one with many, the plugin's and the peer's. The aim is a ratio below 1.5.
func BenchmarkPublishAmongMounts(b *testing.B) {
	binary, cluster := build(b), apiserver.New()
	// The namespaces with few mounts are made before the many are.
	quiet := mountns.SharedDir(b)
	addMounts(b, quiet, few)
	onQuiet, peerOnQuiet := start(b, binary, quiet, b.TempDir(), cluster), newPeer(b, quiet)
	crowded := mountns.SharedDir(b)
	addMounts(b, crowded, many)
	onCrowded, peerOnCrowded := start(b, binary, crowded, b.TempDir(), cluster), newPeer(b, crowded)

	v := onQuiet.volume("data", 0)
	for _, p := range []*plugin{onQuiet, onCrowded} {
		p.publish(b, v, pod(0))
		p.unpublish(b, v, pod(0))
	}
	var plugin50, plugin5000, peer50, peer5000 samples
	for b.Loop() {
		for range perPeerAmongMany {
			plugin50.time(func() { onQuiet.publish(b, v, pod(0)) })
			onQuiet.unpublish(b, v, pod(0))
			plugin5000.time(func() { onCrowded.publish(b, v, pod(0)) })
			onCrowded.unpublish(b, v, pod(0))
		}
		peer50.time(func() { peerOnQuiet.bind(b) })
		peerOnQuiet.unbind(b)
		peer5000.time(func() { peerOnCrowded.bind(b) })
		peerOnCrowded.unbind(b)
	}
	hideTotal(b)
	plugin50.report(b, "plugin-50")
	plugin5000.report(b, "plugin-5000")
	peer50.report(b, "peer-50")
	peer5000.report(b, "peer-5000")
	b.ReportMetric(ratio(plugin5000.p50(), plugin50.p50()), "plugin-5000/50")
	b.ReportMetric(ratio(peer5000.p50(), peer50.p50()), "peer-5000/50")
}

// addMounts adds mounts of other volumes below the kubelet directory root.
func addMounts(b *testing.B, root string, count int) {
	b.Helper()
	source := b.TempDir()
	for n := range count {
		target := filepath.Join(root, "pods", "other-"+strconv.Itoa(n), "mount")
		makeDir(b, target)
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			b.Fatalf("mount number %d: %v", n, err)
		}
	}
}
