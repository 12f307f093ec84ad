package main

import (
	"testing"

	"liken.sh/csicommon/csitest/conformance"
)

// csi-sanity, against a standalone plugin. Not parallel: Ginkgo keeps state of
// its own.
func TestConformance(t *testing.T) {
	n := newStandaloneNode(t)
	n.Start()
	conformance.Run(t, conformance.Config{Socket: n.Socket(), Targets: n.KubeletDir})
}
