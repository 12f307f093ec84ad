package published_test

import (
	"os"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
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
	mountns.Main(m)
}
