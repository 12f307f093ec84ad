package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command is how programs are run: where, with which more variables, and told what.
type command struct {
	dir   string
	env   []string
	stdin string
}

// run returns what the program printed, and as an error what it complained about.
func (c command) run(program string, arguments ...string) (string, error) {
	cmd := exec.Command(program, arguments...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdin = strings.NewReader(c.stdin)
	var output, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &complaint
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(output.String() + "\n" + complaint.String())
		lines := strings.Split(said, "\n")
		const last = 20
		said = strings.Join(lines[max(0, len(lines)-last):], "\n")
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(arguments[:min(2, len(arguments))], " "), err, said)
	}
	return strings.TrimSpace(output.String()), nil
}

// tools are the programs that a release is made with, as their modules pin them.
type tools struct {
	cosign, crane, helm string
	command
}

// findTools builds them, unless Go has them in its cache: cosign for minutes.
func findTools(root, work string) (tools, error) {
	found := tools{command: command{dir: root, env: []string{
		// A login lasts as long as the release, and a rehearsal uses nobody's.
		"DOCKER_CONFIG=" + work + "/docker",
		"HELM_CACHE_HOME=" + work + "/helm", "HELM_CONFIG_HOME=" + work + "/helm", "HELM_DATA_HOME=" + work + "/helm",
	}}}
	for name, at := range map[string]struct {
		module string
		path   *string
	}{
		"cosign": {"hack/release/tools", &found.cosign},
		"crane":  {"hack/release/tools", &found.crane},
		"helm":   {"hack/helm", &found.helm},
	} {
		path, err := command{dir: filepath.Join(root, at.module), env: []string{"GOWORK=off"}}.run("go", "tool", "-n", name)
		if err != nil {
			return tools{}, fmt.Errorf("build %s: %w", name, err)
		}
		*at.path = path
	}
	return found, nil
}

// login has all tools write to the registry, which is a host and a path.
func (t tools) login(registry, user, password string) error {
	host, _, _ := strings.Cut(registry, "/")
	t.stdin = password
	_, err := t.run(t.crane, "auth", "login", host, "--username", user, "--password-stdin")
	return err
}
