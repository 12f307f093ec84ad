package nodevolume_test

import (
	"flag"
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
	// They wait for delays and for children more than they work; -parallel asks for another
	// number.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	mountns.MainInMemory(m)
}
