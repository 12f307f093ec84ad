package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
)

// Main is mountns.Main of a package whose tests run a driver's command: it is built first,
// as by Build, and the variable has the path of the program.
func Main(m *testing.M, variable, command string, more ...string) {
	if os.Getenv(variable) != "" {
		mountns.Main(m)
	}
	os.Exit(run(m, variable, command, more))
}

func run(m *testing.M, variable, command string, more []string) int {
	dir, err := os.MkdirTemp("", "program")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }() //nolint:forbidigo // Nothing but the program is there.
		program := filepath.Join(dir, filepath.Base(command))
		if err = Build(program, command, more...); err == nil {
			err = os.Setenv(variable, program)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return mountns.Run(m)
}

// Build compiles a driver's command, by its import path, into the file of a program, with the
// race detector if the tests have it; more are arguments of go build. It is what TestMain
// calls, before there is a test; the tests call DependsOnDrivers.
func Build(program, command string, more ...string) error {
	arguments := append([]string{"build", "-o", program}, more...)
	if Raced {
		arguments = append(arguments, "-race")
	}
	said, err := exec.Command("go", append(arguments, command)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, said)
	}
	return nil
}
