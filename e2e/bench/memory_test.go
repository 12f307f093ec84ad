package bench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/mountns"
)

const (
	ownVolumes     = 100
	foreignVolumes = 20_000
)

// memory is what a process has resident, in KiB: now (of which its own, and of
// its binary) and at most since the last resetPeak.
type memory struct{ now, anonymous, file, peak int }

func (p *plugin) memory(b *testing.B) memory {
	b.Helper()
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		b.Fatal(err)
	}
	defer status.Close()
	var m memory
	fields := map[string]*int{"VmRSS": &m.now, "RssAnon": &m.anonymous, "RssFile": &m.file, "VmHWM": &m.peak}
	for lines := bufio.NewScanner(status); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if field := fields[key]; field != nil {
			if _, err := fmt.Sscanf(value, "%d kB", field); err != nil {
				b.Fatalf("read %s of the plugin: %v", key, err)
			}
		}
	}
	return m
}

func (m memory) report(b *testing.B, name string) {
	b.ReportMetric(mebibytes(m.now), name+"-MiB")
	b.ReportMetric(mebibytes(m.anonymous), name+"-anon-MiB")
	b.ReportMetric(mebibytes(m.file), name+"-file-MiB")
}

func mebibytes(kib int) float64 { return float64(kib) / 1024 }

// resetPeak makes the peak what is resident now.
func (p *plugin) resetPeak(b *testing.B) {
	b.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0); err != nil {
		b.Fatalf("reset the plugin's peak: %v", err)
	}
}

// settle is how long after the last call memory is read: what follows a call in
// the background (a look at the copy, a sweep) is then done.
const settle = time.Second

// BenchmarkMemory reads what the plugin has resident without a copy, with copies
// that pods hold, with the same copies let go, and around two removals, each with
// its complete read of the cluster: one when all PersistentVolumes are the
// node's own, one when there are those of others too. The aims are less than
// 25 MiB with the copies, and less than 10 MiB more with the others.
func BenchmarkMemory(b *testing.B) {
	binary := build(b)
	for b.Loop() {
		measureMemory(b, binary)
	}
	hideTotal(b)
}

func measureMemory(b *testing.B, binary string) {
	b.Helper()
	cluster := apiserver.New()
	p := start(b, binary, mountns.SharedDir(b), b.TempDir(), cluster)
	time.Sleep(settle)
	p.memory(b).report(b, "no-copies")
	volumes := p.publishAll(b)
	time.Sleep(settle)
	p.memory(b).report(b, "held")
	for n, v := range volumes {
		p.unpublish(b, v, pod(n))
	}
	time.Sleep(settle)
	p.memory(b).report(b, "unheld")

	alone := p.memoryOfRemoval(b, volumes[0])
	cluster.AddForeignVolumes(foreignVolumes)
	crowded := p.memoryOfRemoval(b, volumes[1])
	alone.report(b, "removal")
	crowded.report(b, "removal-20000")
	b.ReportMetric(mebibytes(alone.peak), "removal-peak-MiB")
	b.ReportMetric(mebibytes(crowded.peak), "removal-20000-peak-MiB")
	b.ReportMetric(mebibytes(crowded.peak-alone.peak), "others-peak-MiB")
	b.ReportMetric(mebibytes(crowded.now-alone.now), "others-MiB")
}

// publishAll publishes the node's volumes and waits until each is watched.
func (p *plugin) publishAll(b *testing.B) []kubelet.Volume {
	var volumes []kubelet.Volume
	for n := range ownVolumes {
		volumes = append(volumes, p.volume("data", n))
		p.publish(b, volumes[n], pod(n))
	}
	await(b, "for the watches", func() bool { return p.cluster.Count("watch", "persistentvolumes") >= ownVolumes })
	return volumes
}

// memoryOfRemoval deletes the PersistentVolume and reads the memory right after its
// copy is gone.
func (p *plugin) memoryOfRemoval(b *testing.B, v kubelet.Volume) memory {
	b.Helper()
	p.resetPeak(b)
	p.cluster.DeleteVolume(v.PV)
	await(b, "for the copy's removal", func() bool {
		_, err := os.Lstat(filepath.Join(p.store, "copies", v.Handle))
		return os.IsNotExist(err)
	})
	return p.memory(b)
}
