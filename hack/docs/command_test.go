package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	commandPattern = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")
	makePattern    = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z0-9-]*)")
	targetPattern  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
)

// What a reader pastes is at least something that a shell can read.
func TestCommandsAreReadable(t *testing.T) {
	checked := 0
	for path, text := range pages(t) {
		for _, block := range commandPattern.FindAllStringSubmatch(text, -1) {
			checked++
			cmd := exec.Command("bash", "-n")
			cmd.Stdin = strings.NewReader(block[1])
			if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
				t.Errorf("%s: %v: %s\n%s", path, err, said, block[1])
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d blocks of commands were found", checked)
	}
}

// A target of make that a page names is in the Makefile.
func TestTargetsAreThere(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := make(map[string]bool)
	for _, match := range targetPattern.FindAllStringSubmatch(string(makefile), -1) {
		targets[match[1]] = true
	}
	named := 0
	for path, text := range pages(t) {
		for _, match := range makePattern.FindAllStringSubmatch(text, -1) {
			named++
			if !targets[match[1]] {
				t.Errorf("%s: make has no target %q", path, match[1])
			}
		}
	}
	if named < 10 {
		t.Errorf("only %d targets are named", named)
	}
}
