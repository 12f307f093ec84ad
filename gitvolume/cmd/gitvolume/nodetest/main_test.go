package nodetest

import (
	"testing"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/process"
)

// programVariable has the path of the program that the tests run.
const programVariable = "GITVOLUME_NODETEST_PROGRAM"

// TestMain builds the program, for the tests that run in a namespace below.
func TestMain(m *testing.M) {
	gate.Enter()
	process.Main(m, programVariable, "liken.sh/gitvolume/cmd/gitvolume")
}
