package nodetest

import (
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
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
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
	n.Start("--allow-insecure")
	empty := n.Plugin.Anonymous()
	volumes := n.costly()
	for i, v := range volumes {
		n.MustPublish(v, i) // All at a time, a busy machine may take too long for each.
	}
	n.Plugin.Stop()
	var handles []string
	for _, v := range volumes {
		handles = append(handles, v.Handle)
	}
	n.armed(handles...)
	cmd := n.Command("--allow-insecure")
	g := newGateOf(b, cmd, unix.SYS_EXECVE)
	n.StartUnregistered(cmd)
	n.Register()
	for i, v := range volumes {
		if err := n.Kubelet.Republish(context.Background(), v, rig.Pod(i)); err != nil {
			b.Fatal(err)
		}
	}
	n.round(volumes, "first") // Which reads every file once.
	started := n.Plugin.Anonymous()
	idle := settled(n.Plugin)
	g.reset(nil, nil)
	before, own, rounds := n.Plugin.FamilyTime(), n.Plugin.ProcessorTime(), 0
	for b.Loop() {
		rounds++
		n.round(volumes, strconv.Itoa(rounds))
	}
	after, used, processes := n.Plugin.Anonymous(), n.Plugin.FamilyTime()-before, g.count()
	own = n.Plugin.ProcessorTime() - own
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
		n.MustUnpublish(v, i)
	}
}

// costly are the volumes, and their repositories.
func (n *node) costly() (volumes []kubelet.Volume) {
	urls, _ := n.served(costlyVolumes, costlyFiles)
	for i, url := range urls {
		name := fmt.Sprintf("v%d", i)
		volumes = append(volumes, kubelet.Volume{
			PV: name, Handle: name, AccessMode: corev1.ReadWriteOncePod, Attributes: map[string]string{"url": url},
		})
	}
	return volumes
}

// served are repositories v0, v1 and so on, beside the node's and of the same content, with so
// many files each, and the server that has them.
func (n *node) served(repositories, files int) (urls []string, server *gittest.HTTP) {
	n.T.Helper()
	var stream strings.Builder
	stream.WriteString("commit refs/heads/main\ncommitter t <t@example.invalid> 1700000000 +0000\ndata 2\nup\n")
	for i := range files {
		content := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 20+i%80)
		fmt.Fprintf(&stream, "M 100644 inline d%d/f%d\ndata %d\n%s\n", i/50, i, len(content), content)
	}
	n.remote.Import(stream.String())
	n.remote.Git("repack", "-adq")
	root := filepath.Dir(n.remote.Dir)
	server = gittest.StartHTTP(n.T, root, gittest.HTTPOptions{})
	for i := range repositories {
		name := fmt.Sprintf("v%d.git", i)
		if err := os.CopyFS(filepath.Join(root, name), os.DirFS(n.remote.Dir)); err != nil {
			n.T.Fatal(err)
		}
		urls = append(urls, server.URL("/"+name))
	}
	return urls, server
}

// round has each application write a file, and waits until all of it arrived.
func (n *node) round(volumes []kubelet.Volume, content string) {
	n.T.Helper()
	tip := func(v kubelet.Volume) string {
		text, _ := os.ReadFile(filepath.Join(filepath.Dir(n.remote.Dir), v.Handle+".git", "refs", "heads", "main"))
		return string(text)
	}
	before := make([]string, len(volumes))
	for i, v := range volumes {
		before[i] = tip(v)
		write(n.T, n.Kubelet.Target(rig.Pod(i).UID, v.PV), "d0/f0", content)
	}
	for i, v := range volumes {
		process.Await(n.T, v.Handle+" to arrive", func() bool { return tip(v) != before[i] })
	}
}

// settled is what memory the plugin has once it has given back what it does not need, which
// it looks for each minute.
func settled(p *process.Process) int64 {
	least := p.Anonymous()
	for end := time.Now().Add(70 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		least = min(least, p.Anonymous())
	}
	return least
}
