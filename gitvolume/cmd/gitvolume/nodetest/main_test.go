package nodetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/mountns"
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
	arguments := []string{"build", "-o", program}
	if raced {
		arguments = append(arguments, "-race")
	}
	said, err := exec.Command("go", append(arguments, "liken.sh/gitvolume/cmd/gitvolume")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, said)
	}
	return nil
}
