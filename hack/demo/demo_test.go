package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
)

func TestMain(m *testing.M) { mountns.Main(m) }

func TestPerNodeStory(t *testing.T) {
	mountns.Require(t)
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/pernode")
	build.Dir = filepath.Join("..", "..", "pernode")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the driver: %v\n%s", err, out)
	}
	dir := mountns.SharedDir(t)
	var told strings.Builder
	if err := tellAll(t.Context(), &told, bin, dir); err != nil {
		t.Fatalf("%v\n%s", err, &told)
	}
	if strings.Contains(told.String(), dir) {
		t.Errorf("the temporary directory is in what a person reads:\n%s", &told)
	}
	if !strings.Contains(told.String(), "exit code 0") {
		t.Errorf("the story does not end with the driver's clean stop:\n%s", &told)
	}
}

func TestADifferenceEndsTheStory(t *testing.T) {
	mountns.Require(t)
	n := newNarrator(io.Discard, "")
	for _, difference := range []error{
		n.answered(nil, 9),
		n.answered(nil, 0, "words that are not there"),
		equal("it", 1, 2),
	} {
		if difference == nil {
			t.Error("a difference is not an error")
		}
	}
	bin := t.TempDir()
	if out, err := exec.Command("cp", "/bin/true", filepath.Join(bin, "pernode")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	err := tellAll(t.Context(), io.Discard, bin, mountns.SharedDir(t))
	if err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("a driver that ends at once: %v", err)
	}
}
