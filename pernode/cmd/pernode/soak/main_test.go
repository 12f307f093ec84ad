//go:build soak

package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

// programVariable has the path of the program that is tortured.
const programVariable = "PERNODE_SOAK_PROGRAM"

// TestMain builds the program, for the test that runs in a namespace below.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		mountns.Main(m)
	}
	dir, err := os.MkdirTemp("", "soak-program")
	if err != nil {
		panic(err)
	}
	program := filepath.Join(dir, "pernode")
	if err := process.Build(program, "liken.sh/pernode/cmd/pernode", "-tags", "grpcnotrace"); err != nil {
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
