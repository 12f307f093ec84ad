package process

import (
	"fmt"
	"os/exec"
)

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
