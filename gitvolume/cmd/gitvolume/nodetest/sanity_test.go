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
	n.start()
	conformance.Run(t, conformance.Config{
		Socket: n.socket(), Targets: n.kubeletDir, Attributes: n.volume("").Attributes,
		AccessMode: csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, ReadOnly: true,
		// Writeable volumes are not served yet.
		Skip: "single node single writer",
	})
}
