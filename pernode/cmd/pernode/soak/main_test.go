//go:build soak

package soak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
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
	if err := build(program); err != nil {
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

func build(program string) error {
	arguments := []string{"build", "-tags", "grpcnotrace", "-o", program}
	if raced {
		arguments = append(arguments, "-race")
	}
	said, err := exec.Command("go", append(arguments, "liken.sh/pernode/cmd/pernode")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, said)
	}
	return nil
}
