package nodetest

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/csitest/conformance"
)

// csi-sanity, against a standalone plugin. Not parallel: Ginkgo keeps state of its own.
func TestConformance(t *testing.T) {
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.Start()
	conformance.Run(t, conformance.Config{
		Socket: n.Socket(), Targets: n.KubeletDir, Attributes: map[string]string{"url": "file://" + n.remote.Dir},
		AccessMode: csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, ReadOnly: true,
	})
}
