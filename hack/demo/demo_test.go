package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

func TestMain(m *testing.M) { mountns.Main(m) }

func TestStories(t *testing.T) {
	mountns.Require(t)
	process.DependsOnDrivers()
	modules := []string{"pernode", "gitvolume"}
	all := stories()
	if len(all) != len(modules) {
		t.Fatalf("there are %d stories", len(all))
	}
	for i, module := range modules {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/"+module)
			build.Dir = filepath.Join("..", "..", module)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build the driver: %v\n%s", err, out)
			}
			dir := mountns.SharedDir(t)
			var told strings.Builder
			if err := tellAll(t.Context(), &told, all[i:i+1], bin, dir); err != nil {
				t.Fatalf("%v\n%s", err, &told)
			}
			if strings.Contains(told.String(), dir) {
				t.Errorf("the temporary directory is in what a person reads:\n%s", &told)
			}
			if !strings.Contains(told.String(), "exit code 0") && letsIn() {
				t.Errorf("the story does not end with the driver's clean stop:\n%s", &told)
			}
		})
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
	err := tellAll(t.Context(), io.Discard, stories(), bin, mountns.SharedDir(t))
	if err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("a driver that ends at once: %v", err)
	}
}
