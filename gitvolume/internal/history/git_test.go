package history

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// peer is the git command on the same repository, kept from the machine's settings.
type peer struct {
	t   testing.TB
	dir string
	env []string
}

func newPeer(t testing.TB, dir string) *peer {
	t.Helper()
	home := t.TempDir()
	empty := filepath.Join(home, "gitconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return &peer{t: t, dir: dir, env: append(os.Environ(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+empty, "HOME="+home, "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.com")}
}

// try runs git and gives what it printed.
func (p *peer) try(input string, args ...string) (string, error) {
	p.t.Helper()
	command := exec.Command("git", args...)
	command.Dir, command.Env, command.Stdin = p.dir, p.env, strings.NewReader(input)
	var out, failed bytes.Buffer
	command.Stdout, command.Stderr = &out, &failed
	err := command.Run()
	return out.String() + failed.String(), err
}

// run runs git, which has to succeed, without the last newline of what it prints.
func (p *peer) run(args ...string) string { p.t.Helper(); return p.feed("", args...) }

// feed is run with something on git's input.
func (p *peer) feed(input string, args ...string) string {
	p.t.Helper()
	out, err := p.try(input, args...)
	if err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

// id runs git, which prints an id.
func (p *peer) id(input string, args ...string) object.ID {
	p.t.Helper()
	return parse(p.t, p.feed(input, args...))
}

// fsck fails the test if git finds fault with the repository.
func (p *peer) fsck() {
	p.t.Helper()
	out, err := p.try("", "fsck", "--strict", "--full", "--no-dangling", "--no-progress")
	for line := range strings.Lines(out) {
		// A repository without refs, or without the one that HEAD names, is sound.
		if err != nil || !strings.HasPrefix(line, "notice: ") {
			p.t.Errorf("git fsck: %v\n%s", err, out)
			return
		}
	}
}

func parse(t testing.TB, text string) object.ID {
	t.Helper()
	id, err := object.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// newRepository is a repository of the store and git on it.
func newRepository(t testing.TB) (*Repository, *peer) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repository")
	if err := Create(dir); err != nil {
		t.Fatal(err)
	}
	return openRepository(t, dir), newPeer(t, dir)
}

func openRepository(t testing.TB, dir string) *Repository {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// must gives the value, or panics with the error, which fails the test with its line.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// someone is a signature to be used where it does not matter.
func someone() Signature {
	return Signature{Name: "Someone", Email: "someone@example.com", When: time.Unix(1700000000, 0).UTC()}
}

// commit adds a commit of a tree.
func commit(t testing.TB, r *Repository, tree object.ID, parents ...object.ID) object.ID {
	t.Helper()
	id, err := r.Commit(Draft{Tree: tree, Parents: parents, Author: someone(), Committer: someone(), Message: "test\n"})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// file is a change that makes the path a file.
func file(t testing.TB, r *Repository, path, content string) Change {
	t.Helper()
	blob, err := r.Blob([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return Change{Path: path, Mode: object.Regular, Blob: blob}
}
