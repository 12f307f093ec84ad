package nodetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

// programVariable has the path of the program that the tests run.
const programVariable = "GITVOLUME_NODETEST_PROGRAM"

// TestMain builds the program, for the tests that run in a namespace below.
func TestMain(m *testing.M) {
	gate.Enter()
	if os.Getenv(programVariable) != "" {
		mountns.Main(m)
	}
	dir, err := os.MkdirTemp("", "nodetest")
	if err != nil {
		panic(err)
	}
	program := filepath.Join(dir, "gitvolume")
	if err := process.Build(program, "liken.sh/gitvolume/cmd/gitvolume"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := os.Setenv(programVariable, program); err != nil {
		panic(err)
	}
	code := mountns.Run(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
