//go:build soak

package soak

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

const (
	// upPrefix is of the names of files that upstream alone writes.
	upPrefix = "up-"
	// alwaysPath is a file of upstream's that is never gone.
	alwaysPath = "up/up-always"
)

// colleague pushes to a branch from a clone of their own.
type colleague struct {
	bare     *gittest.Bare
	branch   string
	dir      string
	config   string
	random   *rand.Rand
	findings *findings
	writers  []string // The volumes of the branch, which have a directory each.
	number   int
	pushes   int
	merges   int
}

// seal is a content that tells whether it is whole.
func seal(content string) string {
	return fmt.Sprintf("%s\n%x\n", content, sha256.Sum256([]byte(content)))
}

func isSealed(content string) bool {
	const end = 1 + 2*sha256.Size + 1
	return len(content) > end && seal(content[:len(content)-end]) == content
}

func (c *colleague) try(arguments ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", c.dir, "-c", "core.quotePath=false", "-c", "merge.renames=false", "-c", "gc.auto=0"}, arguments...)...)
	cmd.Env = gittest.Environment(c.config)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %q: %w: %s%s", arguments, err, out.String(), said.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// git is try, where nothing but a defect of the test fails.
func (c *colleague) git(arguments ...string) string {
	out, err := c.try(arguments...)
	if err != nil {
		c.findings.add("a colleague: %v", err)
	}
	return out
}

// open makes the clone.
func (c *colleague) open() {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		c.findings.add("a colleague: %v", err)
		return
	}
	c.git("init", "-q", "-b", c.branch)
	c.git("remote", "add", "origin", c.bare.Dir)
	attributes := filepath.Join(c.dir, ".git", "info", "attributes")
	if err := os.MkdirAll(filepath.Dir(attributes), 0o755); err != nil {
		c.findings.add("a colleague: %v", err)
	}
	// Whoever resolves a conflict keeps the lines of both.
	if err := os.WriteFile(attributes, []byte("* merge=union\n"), 0o600); err != nil {
		c.findings.add("a colleague: %v", err)
	}
}

// commit has a change be made on what is upstream, and pushes it, again if somebody else
// was faster.
func (c *colleague) commit(what string, change func()) {
	for range 20 {
		c.git("fetch", "-q", "--prune", "origin", "+refs/heads/*:refs/remotes/origin/*")
		c.git("checkout", "-q", "-f", "-B", c.branch, "origin/"+c.branch)
		before := c.git("rev-parse", "HEAD")
		change()
		c.git("add", "-A")
		if _, err := c.try("diff", "--cached", "--quiet"); err != nil {
			c.git("commit", "-q", "-m", what)
		}
		if c.git("rev-parse", "HEAD") == before {
			return
		}
		if _, err := c.try("push", "-q", "origin", "HEAD:refs/heads/"+c.branch); err == nil {
			c.pushes++
			return
		}
		time.Sleep(time.Duration(c.random.IntN(100)) * time.Millisecond)
	}
}

func (c *colleague) write(path, content string) {
	at := filepath.Join(c.dir, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		c.findings.add("a colleague: %v", err)
	}
	if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
		c.findings.add("a colleague: %v", err)
	}
}

// content is one that there never was.
func (c *colleague) content() string {
	c.number++
	return fmt.Sprintf("upstream %s %d %x\n%s", c.branch, c.number, c.random.Uint64(), strings.Repeat("up\n", c.random.IntN(3000)))
}

// begin makes the first commit.
func (c *colleague) begin() {
	c.write(alwaysPath, seal(c.content()))
	for i := range shares {
		c.write(sharePath(i), strings.Repeat(fmt.Sprintf("of %d\n", i), 30))
	}
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "begin")
	c.git("push", "-q", "origin", "HEAD:refs/heads/"+c.branch)
}

// step pushes one change.
func (c *colleague) step() {
	switch n := c.random.IntN(100); {
	case n < 35:
		c.commit("replace", func() { c.write(alwaysPath, seal(c.content())) })
	case n < 60: // Also where an application is at work.
		dirs := append([]string{"up", "up/deep/er"}, c.writers...)
		path := fmt.Sprintf("%s/%s%d", dirs[c.random.IntN(len(dirs))], upPrefix, c.random.IntN(15))
		c.commit("change", func() { c.write(path, c.content()) })
	case n < 70:
		c.commit("remove", c.removeOne)
	case n < 85: // Where no application writes.
		c.commit("insert", func() { c.share(func(content string) string { return c.line() + content }) })
	case n < 90: // Where applications write: a conflict, if one does.
		c.commit("conflict", func() { c.share(func(content string) string { return content + c.line() }) })
	default:
		c.mergeAll()
	}
}

func (c *colleague) line() string {
	c.number++
	return fmt.Sprintf("upstream %s %d %x\n", c.branch, c.number, c.random.Uint64())
}

func (c *colleague) share(change func(content string) string) {
	path := sharePath(c.random.IntN(shares))
	content, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil {
		c.findings.add("a colleague: %v", err)
		return
	}
	c.write(path, change(string(content)))
}

// removeOne removes a file of upstream's own.
func (c *colleague) removeOne() {
	files := slices.DeleteFunc(strings.Split(c.git("ls-files"), "\n"), func(path string) bool {
		return !strings.HasPrefix(filepath.Base(path), upPrefix) || path == alwaysPath
	})
	if len(files) > 0 {
		_ = os.Remove(filepath.Join(c.dir, files[c.random.IntN(len(files))]))
	}
}

// sides are the side branches that there are.
func (c *colleague) sides() []string {
	out, err := c.bare.TryGit("for-each-ref", "--format=%(refname:strip=2)", "refs/heads/"+c.branch+".*")
	if err != nil {
		return nil
	}
	return strings.Fields(out)
}

// mergeAll merges the side branches, as a person does who finds them.
func (c *colleague) mergeAll() {
	for _, side := range c.sides() {
		c.commit("merge", func() {
			if _, err := c.try("rev-parse", "-q", "--verify", "refs/remotes/origin/"+side); err != nil {
				return // It healed meanwhile.
			}
			if _, err := c.try("merge", "-q", "-m", "Merge "+side, "origin/"+side); err != nil {
				c.findings.add("a colleague cannot merge: %v", err)
				return
			}
			c.merges++
		})
	}
}

// work goes on until ctx is over.
func (c *colleague) work(ctx context.Context) {
	for ctx.Err() == nil {
		c.step()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(200+c.random.IntN(3000)) * time.Millisecond):
		}
	}
}
