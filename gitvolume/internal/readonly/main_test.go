package readonly_test

import (
	"fmt"
	"os"
	"testing"

	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/remote"
)

const helperWord = "credential-helper"

// TestMain lets git run the test binary, as it does the driver.
func TestMain(m *testing.M) {
	remote.Child(os.Args)
	if len(os.Args) > 1 && os.Args[1] == helperWord {
		os.Exit(credential.Helper(os.Args[2:], os.Stdin, os.Stdout))
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	if scratch, err = os.MkdirTemp("", "r"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	if err := prepare(); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// prepare makes the command, as the driver's own is.
func prepare() (err error) {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	command, err = remote.New(remote.Settings{Executable: program, Directory: scratch + "/g", Environment: os.Environ()})
	return err
}

// Those are set by TestMain alone.
var (
	command *remote.Command
	scratch string // Of a short path: sockets are in it.
)
