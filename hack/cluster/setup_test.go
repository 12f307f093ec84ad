package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Somebody who may not run the cluster is told before minutes of compiling, and in one
// line; what needs no root goes on.
func TestSetupAsksForRootFirst(t *testing.T) {
	script, err := filepath.Abs("../setup")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, text := range map[string]string{"id": "echo 1000", "go": "echo go was asked >&2"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	setup := func(arguments ...string) string {
		command := exec.Command(script, arguments...)
		command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		output, err := command.CombinedOutput()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
			t.Fatalf("got %v: %s", err, output)
		}
		return string(output)
	}
	if said := setup("cluster"); !strings.Contains(said, "needs root") || strings.Count(said, "\n") != 1 {
		t.Errorf("the cluster: %q", said)
	}
	if said := setup(); strings.Contains(said, "needs root") {
		t.Errorf("without the cluster: %q", said)
	}
}
