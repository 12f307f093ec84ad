//go:build e2e

package pernode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"liken.sh/e2e/cluster"
)

// TestHealth has somebody move a copy under its pod, and back. The plugin that
// finds out was started anew, so it has seen neither the copy nor its publish.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	volume := s.volume()
	node := kube.Nodes[0]
	s.pod("pod", node, volume)
	s.Runs("pod", cluster.Soon)
	// Out of the copies' directory, where it would be taken for another volume's.
	place, aside := store+"/copies/"+volume, store+"/../"+volume
	t.Cleanup(func() { kube.MustOnNode(t, node, "rm", "-rf", aside) })
	kube.MustOnNode(t, node, "mv", place, aside)
	perNode.RestartPlugin(t, node)
	// The kubelet asks once a minute, and the driver looks every 30 s.
	s.HealthBecomes("pod", "data Degraded CopyDeleted")
	kube.MustOnNode(t, node, "mv", aside, place)
	s.HealthBecomes("pod")
	// That the copy goes with its volume is part of every test's end. This plugin has
	// to know the volume by what the holds say: its sweeps are ten minutes apart.
}

// TestStats compares the kubelet's metrics with what the pod wrote. The kubelet takes
// minutes to ask, so this begins before the tests that run alone, and goes on among
// the parallel ones: Go runs tests in the order of their files' names.
func TestStats(t *testing.T) {
	kube.Disturbed(t)
	s := newSpace(t)
	volume := s.volume()
	node := kube.Nodes[0]
	s.pod("pod", node, volume)
	s.Runs("pod", cluster.Soon)
	s.Exec("pod", "dd if=/dev/zero of=/data/big bs=1M count=8 2>/dev/null; touch /data/one /data/two")

	t.Parallel()
	rows := []struct {
		series        string
		least, atMost float64
	}{
		{"used_bytes", 8 << 20, 9 << 20},
		{"inodes_used", 4, 4}, // Three files and the directory.
		{"available_bytes", 1 << 20, 1 << 60},
		{"capacity_bytes", 1 << 30, 1 << 60},
	}
	for _, row := range rows {
		series := "kubelet_volume_stats_" + row.series
		// The kubelet asks each one to two minutes, and is given what the driver
		// measured at most a minute before it was asked the last time.
		cluster.Eventually(t, 2*cluster.Patient, "the kubelet shows "+series, func() error {
			got, err := s.kubeletSeries(node, series, volume)
			if err == nil && (got < row.least || got > row.atMost) {
				err = fmt.Errorf("it is %g, want %g to %g", got, row.least, row.atMost)
			}
			return err
		})
	}
}

// kubeletSeries is the claim's value in the kubelet's metrics.
func (s *space) kubeletSeries(node, series, claim string) (float64, error) {
	text, err := kube.Client.CoreV1().RESTClient().Get().
		Resource("nodes").Name(node).SubResource("proxy").Suffix("metrics").DoRaw(s.T.Context())
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, series+"{") && strings.Contains(line, strconv.Quote(s.Name)) && strings.Contains(line, strconv.Quote(claim)) {
			fields := strings.Fields(line)
			return strconv.ParseFloat(fields[len(fields)-1], 64)
		}
	}
	return 0, errors.New("there is no such series")
}
