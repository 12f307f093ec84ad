package nodevolume_test

import (
	"fmt"
	"os"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/gitvolume/internal/remote"
)

func TestMain(m *testing.M) {
	remote.Child(os.Args)
	if url := os.Getenv(killedURL); url != "" {
		if err := runUntilKilled(os.Getenv(killedStore), url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	mountns.MainInMemory(m)
}
