package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// workshop is a repository with a work tree, in which git rebases what this package
// rebases in the bare repository below it.
type workshop struct {
	tree       string
	env        []string
	repository *Repository
	// merges counts how often git was asked.
	merges int
	clock  time.Time
}

// failer is what a test and a property of one have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newWorkshop(t testing.TB) *workshop {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "gitconfig")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := &workshop{
		tree: filepath.Join(dir, "work"),
		env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "TZ=UTC",
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + config, "GIT_EDITOR=false",
			"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.invalid",
			"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.invalid",
		},
		clock: time.Unix(1_700_000_000, 0).UTC(),
	}
	w.git(t, dir, "init", "-q", "-b", "main", w.tree)
	w.git(t, w.tree, "config", "gc.auto", "0")
	w.git(t, w.tree, "commit", "-q", "--allow-empty", "-m", "begin") // git rebases from some HEAD
	w.git(t, w.tree, "config", "core.fsync", "none")
	repository, err := Open(filepath.Join(w.tree, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repository.Close)
	w.repository = repository
	return w
}

// git runs git in a directory and gives what it printed.
func (w *workshop) git(t failer, dir string, args ...string) string {
	t.Helper()
	output, err := w.try(dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, output)
	}
	return strings.TrimSpace(output)
}

func (w *workshop) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, w.env
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// MergeTrees is the Merger of the tests.
func (w *workshop) MergeTrees(ctx context.Context, ours, theirs object.ID, attributes map[string][]byte) (object.ID, []string, error) {
	w.merges++
	dir, err := os.MkdirTemp(w.tree+"/..", "attributes")
	if err != nil {
		return object.ID{}, nil, err
	}
	for path, content := range attributes {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return object.ID{}, nil, err
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return object.ID{}, nil, err
		}
	}
	cmd := exec.CommandContext(ctx, "git", "-c", "merge.directoryRenames=false",
		"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours.String(), theirs.String())
	cmd.Dir = dir
	cmd.Env = append(w.env, "GIT_DIR="+filepath.Join(w.tree, ".git"), "GIT_WORK_TREE="+dir)
	output, err := cmd.Output()
	var exit *exec.ExitError
	clean := err == nil
	if !clean && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return object.ID{}, nil, fmt.Errorf("git merge-tree: %w: %s", err, exit.Stderr)
	}
	fields := strings.Split(strings.TrimSuffix(string(output), "\x00"), "\x00")
	if !clean {
		return object.ID{}, fields[1:], nil
	}
	tree, err := object.Parse(fields[0])
	return tree, nil, err
}

// leaf is a file of a tree in a test.
type leaf struct {
	mode    object.Mode
	content string
}

func text(content string) leaf   { return leaf{object.Regular, content} }
func script(content string) leaf { return leaf{object.Executable, content} }
func link(content string) leaf   { return leaf{object.Symlink, content} }

// module is a submodule at a commit that nobody has.
func module(digit string) leaf { return leaf{object.Submodule, strings.Repeat(digit, 40)} }

// leaves is a tree in a test, by path.
type leaves map[string]leaf

// commit makes a commit of a tree.
func (w *workshop) commit(t failer, tree leaves, parents ...object.ID) object.ID {
	t.Helper()
	var changes []Change
	for path, f := range tree {
		change := Change{Path: path, Mode: f.mode}
		var err error
		if f.mode == object.Submodule {
			change.Blob, err = object.Parse(f.content)
		} else {
			change.Blob, err = w.repository.Blob([]byte(f.content))
		}
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, change)
	}
	id, err := w.repository.Edit(object.ID{}, changes)
	if err != nil {
		t.Fatal(err)
	}
	return w.commitTree(t, id, parents...)
}

func (w *workshop) commitTree(t failer, tree object.ID, parents ...object.ID) object.ID {
	t.Helper()
	w.clock = w.clock.Add(time.Second)
	who := Signature{Name: "a", Email: "a@example.invalid", When: w.clock}
	commit, err := w.repository.Commit(Draft{Tree: tree, Parents: parents, Author: who, Committer: who, Message: fmt.Sprintf("Change %d", w.clock.Unix())})
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// list is a commit's files.
func (w *workshop) list(t failer, commit object.ID) leaves {
	t.Helper()
	tree, err := w.repository.CommitTree(commit)
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.repository.Diff(object.ID{}, tree)
	if err != nil {
		t.Fatal(err)
	}
	listed := leaves{}
	for _, d := range found {
		f := leaf{d.To.Mode, d.To.ID.String()}
		if f.mode != object.Submodule {
			content, err := w.repository.Content(d.To.ID)
			if err != nil {
				t.Fatal(err)
			}
			f.content = string(content)
		}
		listed[d.Path] = f
	}
	return listed
}

// replay is a rebase of this workshop.
func (w *workshop) replay(base, tip, onto object.ID) Replay {
	return Replay{
		Base: base, Tip: tip, Onto: onto, Merger: w,
		Committer: Signature{Name: "c", Email: "c@example.invalid", When: w.clock},
	}
}

// reference rebases with git. conflict is what git says of one.
func (w *workshop) reference(t failer, base, tip, onto object.ID) (result object.ID, conflict string) {
	t.Helper()
	if err := w.repository.Flush(); err != nil {
		t.Fatal(err)
	}
	output, err := w.try(w.tree, "-c", "merge.directoryRenames=false", "-c", "advice.detachedHead=false",
		"rebase", "-q", "--reapply-cherry-picks", "--empty=drop", "--onto", onto.String(), base.String(), tip.String())
	if err != nil {
		if !bytes.Contains([]byte(output), []byte("CONFLICT")) && w.git(t, w.tree, "ls-files", "-u") == "" {
			t.Fatalf("git rebase fails without a conflict: %v\n%s", err, output)
		}
		w.git(t, w.tree, "rebase", "--abort")
		w.git(t, w.tree, "clean", "-fdxq")
		return object.ID{}, output
	}
	result, err = object.Parse(w.git(t, w.tree, "rev-parse", "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	return result, ""
}
