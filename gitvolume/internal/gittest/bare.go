package gittest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Bare is a bare repository on disk, which any of the servers serves, and to which an
// upstream user commits without a working tree.
type Bare struct {
	// Dir is its directory, whose name ends in ".git".
	Dir string
	t   testing.TB
	// config is git's empty global configuration, and no file of the machine.
	config string
}

// NewBare makes a repository that is empty, whose HEAD is the unborn branch main, with
// more arguments for git init, and which takes pushes over HTTP.
func NewBare(t testing.TB, initArguments ...string) *Bare {
	t.Helper()
	parent := t.TempDir()
	b := &Bare{Dir: filepath.Join(parent, "r.git"), t: t, config: filepath.Join(parent, "gitconfig")}
	write(t, b.config, "")
	b.run(nil, nil, append([]string{"init", "-q", "--bare", "-b", "main", b.Dir}, initArguments...))
	b.Git("config", "http.receivepack", "true")
	b.Git("config", "receive.fsckObjects", "true")
	return b
}

// Git runs git in the repository and returns what it printed, without the last newline.
// A failure ends the test.
func (b *Bare) Git(args ...string) string {
	b.t.Helper()
	return b.run([]string{"GIT_DIR=" + b.Dir}, nil, args)
}

// TryGit is Git where a failure is a result.
func (b *Bare) TryGit(args ...string) (string, error) {
	cmd := b.command([]string{"GIT_DIR=" + b.Dir}, args)
	output, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(output), "\n"), err
}

func (b *Bare) run(environment []string, stdin []byte, args []string) string {
	b.t.Helper()
	cmd := b.command(environment, args)
	cmd.Stdin = bytes.NewReader(stdin)
	var output, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &said
	if err := cmd.Run(); err != nil {
		b.t.Fatalf("git %q: %v: %s", args, err, said.String())
	}
	return strings.TrimSuffix(output.String(), "\n")
}

func (b *Bare) command(environment, args []string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Dir(b.Dir)
	cmd.Env = append(Environment(b.config), environment...)
	return cmd
}

// Environment is that of a git which knows nothing of the machine: config is the path
// of an empty file.
func Environment(config string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(config), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + config, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.invalid", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
}

// Commit makes a commit whose tree holds the files, on the parents, and returns its id. No
// ref names it yet.
func (b *Bare) Commit(files map[string]string, parents ...string) string {
	b.t.Helper()
	index := filepath.Join(filepath.Dir(b.Dir), "index")
	_ = os.Remove(index)
	environment := []string{"GIT_DIR=" + b.Dir, "GIT_INDEX_FILE=" + index}
	for path, content := range files {
		blob := b.run(environment, []byte(content), []string{"hash-object", "-w", "--stdin"})
		b.run(environment, nil, []string{"update-index", "--add", "--cacheinfo", "100644," + blob + "," + path})
	}
	args := []string{"commit-tree", b.run(environment, nil, []string{"write-tree"})}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	message := fmt.Sprintf("files %q\n", slices.Sorted(maps.Keys(files)))
	return b.run(environment, []byte(message), args)
}

// Tree makes a tree of one entry, which git itself may not make of that, and returns its id.
func (b *Bare) Tree(mode, name, id string) string {
	b.t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		b.t.Fatal(err)
	}
	content := append([]byte(mode+" "+name+"\x00"), raw...)
	return b.run([]string{"GIT_DIR=" + b.Dir}, content, []string{"hash-object", "-t", "tree", "-w", "--literally", "--stdin"})
}

// Import has git fast-import read the stream: many commits, or large ones, at once.
func (b *Bare) Import(stream string) {
	b.t.Helper()
	b.run([]string{"GIT_DIR=" + b.Dir}, []byte(stream), []string{"fast-import", "--quiet", "--force"})
}

// SetRef has the ref name the object, whatever it named.
func (b *Bare) SetRef(ref, id string) {
	b.t.Helper()
	b.Git("update-ref", ref, id)
}

// Grow puts a commit with one file on the branch and returns its id.
func (b *Bare) Grow(branch, path, content string) string {
	b.t.Helper()
	var parents []string
	if tip := b.Tip("refs/heads/" + branch); tip != "" {
		parents = append(parents, tip)
	}
	id := b.Commit(map[string]string{path: content}, parents...)
	b.SetRef("refs/heads/"+branch, id)
	return id
}

// Put commits changes to a branch, as an upstream user does who goes on from where it is,
// also if that moves meanwhile; an empty content removes the file.
func (b *Bare) Put(branch string, changes map[string]string) {
	b.t.Helper()
	for {
		tip := b.Tip("refs/heads/" + branch)
		var stream strings.Builder
		stream.WriteString("commit refs/up/" + branch + "\ncommitter t <t@example.invalid> 1700000000 +0000\ndata 2\nup\n")
		if tip != "" {
			stream.WriteString("from " + tip + "\n")
		}
		for _, path := range slices.Sorted(maps.Keys(changes)) {
			if content := changes[path]; content == "" {
				fmt.Fprintf(&stream, "D %s\n", path)
			} else {
				fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
			}
		}
		b.Import(stream.String())
		made := b.Tip("refs/up/" + branch)
		b.Git("update-ref", "-d", "refs/up/"+branch)
		if _, err := b.TryGit("update-ref", "refs/heads/"+branch, made, tip); err == nil {
			return
		}
	}
}

// Tip is the id that the ref names; empty if there is no such ref.
func (b *Bare) Tip(ref string) string {
	id, err := b.TryGit("rev-parse", "-q", "--verify", ref)
	if err != nil {
		return ""
	}
	return id
}

// Refs are all refs and their ids.
func (b *Bare) Refs() map[string]string {
	b.t.Helper()
	refs := map[string]string{}
	for line := range strings.Lines(b.Git("for-each-ref", "--format=%(refname) %(objectname)")) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name] = id
	}
	return refs
}

// Hook installs a hook: a script for sh. An empty one removes it.
func (b *Bare) Hook(name, script string) {
	b.t.Helper()
	file := filepath.Join(b.Dir, "hooks", name)
	_ = os.Remove(file)
	if script == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		b.t.Fatal(err)
	}
}
