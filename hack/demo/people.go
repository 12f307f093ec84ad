package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// colleague is somebody else who works on the repository, with a clone and git as
// everybody has it.
type colleague struct{ bare, clone, home string }

// git runs git in the clone, or in another directory, and returns what it prints.
func (c *colleague) git(ctx context.Context, dir string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", arguments...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// remote asks the repository on the server.
func (c *colleague) remote(ctx context.Context, arguments ...string) (string, error) {
	return c.git(ctx, c.bare, arguments...)
}

// do runs git in the clone several times.
func (c *colleague) do(ctx context.Context, commands ...[]string) error {
	for _, command := range commands {
		if _, err := c.git(ctx, c.clone, command...); err != nil {
			return err
		}
	}
	return nil
}

// commits changes a file upstream.
func (c *colleague) commits(ctx context.Context, file, content, subject string) error {
	if err := c.do(ctx, []string{"pull", "-q", "--rebase"}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.clone, file), []byte(content), 0o644); err != nil {
		return err
	}
	return c.do(ctx, []string{"add", file}, []string{"commit", "-q", "-m", subject}, []string{"push", "-q"})
}

// merges takes a side branch into main; where both changed a line, the side branch's counts.
func (c *colleague) merges(ctx context.Context, branch string) error {
	return c.do(ctx,
		[]string{"fetch", "-q"},
		[]string{"merge", "-q", "-X", "theirs", "-m", "Merge what was written meanwhile", "origin/" + branch},
		[]string{"push", "-q"})
}
