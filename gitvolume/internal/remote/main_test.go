package remote

import (
	"os"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/gitvolume/internal/credential"
)

const helperWord = "credential-helper"

// TestMain lets git and ssh run the test binary, as they do the driver.
func TestMain(m *testing.M) {
	Child(os.Args)
	if len(os.Args) > 1 && os.Args[1] == helperWord {
		os.Exit(credential.Helper(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == driverWord {
		driver(os.Args[2:])
	}
	mountns.MainInMemory(m)
}
