package nodetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/gitvolume/internal/gittest"
)

// A node of applications that write: each volume has a repository of its own.
const (
	costlyVolumes = 100
	costlyFiles   = 1000
)

// BenchmarkHundredVolumes is what a hundred volumes of a thousand files cost a plugin: idle,
// and each time that one file of each is written, which is a minute of applications that
// write once a minute. The remote is on the loopback, and its work not counted.
func BenchmarkHundredVolumes(b *testing.B) {
	n := newNode(b)
	n.start("--allow-insecure")
	empty := n.plugin.resident()
	volumes := n.costly()
	for i, v := range volumes {
		n.mustPublish(v, i) // All at a time, a busy machine may take too long for each.
	}
	n.plugin.stop()
	var handles []string
	for _, v := range volumes {
		handles = append(handles, v.Handle)
	}
	n.armed(handles...)
	cmd := n.command(n.flags("--allow-insecure")...)
	g := newGateOf(b, cmd, unix.SYS_EXECVE)
	n.launch(cmd)
	for i, v := range volumes {
		if err := n.kubelet.Republish(context.Background(), v, pod(i)); err != nil {
			b.Fatal(err)
		}
	}
	n.round(volumes, "first") // Which reads every file once.
	started := n.plugin.resident()
	idle := n.plugin.settled()
	g.reset(nil, nil)
	before, own, rounds := n.plugin.consumed(), n.plugin.worked(), 0
	for b.Loop() {
		rounds++
		n.round(volumes, strconv.Itoa(rounds))
	}
	after, used, processes := n.plugin.resident(), n.plugin.consumed()-before, g.count()
	own = n.plugin.worked() - own
	b.StopTimer()
	commits := float64(rounds * costlyVolumes)
	b.ReportMetric(float64(started)/(1<<20), "MiB-started")
	b.ReportMetric(float64(idle)/(1<<20), "MiB-idle")
	b.ReportMetric(float64(idle-empty)/costlyVolumes/(1<<10), "KiB/idle-volume")
	b.ReportMetric(float64(after)/(1<<20), "MiB-after")
	b.ReportMetric(float64(used.Milliseconds())/commits, "ms-CPU/commit")
	b.ReportMetric(float64(own.Milliseconds())/commits, "ms-own-CPU/commit")
	b.ReportMetric(float64(processes)/commits, "processes/commit")
	for i, v := range volumes {
		n.mustUnpublish(v, i)
	}
}

// costly are the volumes, and their repositories.
func (n *node) costly() (volumes []kubelet.Volume) {
	var stream strings.Builder
	stream.WriteString("commit refs/heads/main\ncommitter t <t@example.invalid> 1700000000 +0000\ndata 2\nup\n")
	for i := range costlyFiles {
		content := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 20+i%80)
		fmt.Fprintf(&stream, "M 100644 inline d%d/f%d\ndata %d\n%s\n", i/50, i, len(content), content)
	}
	n.remote.Import(stream.String())
	n.remote.Git("repack", "-adq")
	root := filepath.Dir(n.remote.Dir)
	server := gittest.StartHTTP(n.t, root, gittest.HTTPOptions{})
	for i := range costlyVolumes {
		name := fmt.Sprintf("v%d", i)
		if err := os.CopyFS(filepath.Join(root, name+".git"), os.DirFS(n.remote.Dir)); err != nil {
			n.t.Fatal(err)
		}
		volumes = append(volumes, kubelet.Volume{
			PV: name, Handle: name, AccessMode: corev1.ReadWriteOncePod, Attributes: map[string]string{"url": server.URL("/" + name + ".git")},
		})
	}
	return volumes
}

// round has each application write a file, and waits until all of it arrived.
func (n *node) round(volumes []kubelet.Volume, content string) {
	n.t.Helper()
	tip := func(v kubelet.Volume) string {
		text, _ := os.ReadFile(filepath.Join(filepath.Dir(n.remote.Dir), v.Handle+".git", "refs", "heads", "main"))
		return string(text)
	}
	before := make([]string, len(volumes))
	for i, v := range volumes {
		before[i] = tip(v)
		write(n.t, n.kubelet.Target(pod(i).UID, v.PV), "d0/f0", content)
	}
	for i, v := range volumes {
		await(n.t, v.Handle+" to arrive", func() bool { return tip(v) != before[i] })
	}
}

// resident is how much memory the plugin has, in bytes, without that of files.
func (p *process) resident() int64 {
	p.t.Helper()
	content, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(content, []byte("\nRssAnon:"))
	fields := bytes.Fields(rest)
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return kib << 10
}

// settled is resident once the plugin has given back what it does not need, which it looks
// for each minute.
func (p *process) settled() int64 {
	p.t.Helper()
	least := p.resident()
	for end := time.Now().Add(70 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		least = min(least, p.resident())
	}
	return least
}

// consumed is what the plugin has used of the processors, and the children that ended.
func (p *process) consumed() time.Duration { return p.processorTime(4) }
