//go:build soak

package soak

import (
	"testing"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/process"
)

// programVariable has the path of the program that is tortured.
const programVariable = "PERNODE_SOAK_PROGRAM"

// TestMain builds the program, for the test that runs in a namespace below.
func TestMain(m *testing.M) {
	gate.Enter()
	process.Main(m, programVariable, "liken.sh/pernode/cmd/pernode", "-tags", "grpcnotrace")
}
