package readonly_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
)

func TestBranchIsFollowed(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	b.Grow("main", "d/f", "1")
	n := newNode(t).start()
	a := n.attach(n.volume("v", urlOf(b), nil))
	shows(t, a, "d/f", "1")
	for step, change := range []struct {
		name string
		do   func()
		want string
	}{
		{"a commit", func() { b.Grow("main", "d/f", "2") }, "2"},
		{"a force push", func() { b.SetRef("refs/heads/main", b.Commit(map[string]string{"d/f": "other"})) }, "other"},
		{"a file in place of the directory", func() { b.Grow("main", "d", "file") }, ""},
		{"the directory again", func() { b.Grow("main", "d/f", "3") }, "3"},
	} {
		change.do()
		a.Demand()
		shows(t, a, "d/f", change.want)
		if faults := n.faults("v"); faults != "" {
			t.Errorf("step %d, %s: %s", step, change.name, faults)
		}
	}
}

func TestRefsAreTaken(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	branch, tagged := b.Commit(map[string]string{"f": "branch"}), b.Commit(map[string]string{"f": "tagged"})
	b.SetRef("refs/heads/release", branch)
	b.SetRef("refs/tags/release", tagged)
	b.SetRef("refs/heads/feature/x/y", branch)
	b.SetRef("refs/heads/20260817", branch)
	b.SetRef("refs/heads/deadbeef", branch)
	b.Git("tag", "-a", "-m", "m", "v1", tagged)
	b.Git("tag", "-a", "-m", "m", "v1t", "v1")
	b.SetRef("refs/tags/blob", b.Git("rev-parse", branch+":f"))
	empty := gittest.NewBare(t)
	n := newNode(t).start()
	for _, row := range []struct {
		ref, want string
		err       error
	}{
		{ref: "release", want: "branch"},
		{ref: "refs/tags/release", want: "tagged"},
		{ref: "feature/x/y", want: "branch"},
		{ref: "20260817", want: "branch"},
		{ref: "deadbeef", want: "branch"},
		{ref: "v1", want: "tagged"},
		{ref: "v1t", want: "tagged"},
		{ref: tagged, want: "tagged"},
		{ref: "blob", err: readonly.ErrNoCommit},
		{ref: "missing", err: remote.ErrNoRef},
		{ref: strings.Repeat("1", 40), err: remote.ErrNoRef},
	} {
		t.Run(row.ref, func(t *testing.T) {
			a, err := n.followers.Attach(t.Context(), n.volume("v", urlOf(b), map[string]string{"ref": row.ref}))
			if !errors.Is(err, row.err) {
				t.Fatalf("error %v, want %v", err, row.err)
			}
			if err == nil && read(a, "f") != row.want {
				t.Errorf("it shows %q", read(a, "f"))
			}
			n.must(n.followers.Detach(t.Context(), "v"))
		})
	}
	_, err := n.followers.Attach(t.Context(), n.volume("v", urlOf(empty), map[string]string{"offline": "allowStale"}))
	if !errors.Is(err, remote.ErrNoRef) || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty remote: %v", err)
	}
	n.leavesNothing()
}

// leavesNothing fails if anything is left of volumes.
func (n *node) leavesNothing() {
	n.t.Helper()
	records, problems, err := n.store.All()
	checkouts, err2 := n.store.Checkouts()
	n.must(errors.Join(err, err2))
	if len(records)+len(problems)+len(checkouts) > 0 {
		n.t.Errorf("left are records %v, problems %v, checkouts %v", records, problems, checkouts)
	}
}

func TestRefThatIsDeletedAndComesBack(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	n := newNode(t).start()
	a := n.attach(n.volume("v", urlOf(b), nil))
	b.Git("update-ref", "-d", "refs/heads/main")
	b.Grow("main/below", "f", "stands in the way of the name")
	for range 3 {
		before := n.looks.Load()
		a.Demand()
		until(t, "a look", func() bool { return n.looks.Load() > before && n.faults("v") == "RefDeleted " })
	}
	if said := n.posts.count("GitVolumeRefDeleted"); said != 1 || read(a, "f") != "1" {
		t.Errorf("said %d times; it shows %q", said, read(a, "f"))
	}
	below := n.attach(n.volume("w", urlOf(b), map[string]string{"ref": "main/below"}))
	shows(t, below, "f", "stands in the way of the name")
	b.Git("update-ref", "-d", "refs/heads/main/below")
	b.Grow("main", "f", "2")
	a.Demand()
	shows(t, a, "f", "2")
	until(t, "it is right again", func() bool { return n.faults("v") == "" })
}

// A tag that is moved by force is followed like a branch (C39).
func TestTagThatIsMoved(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	b.SetRef("refs/tags/v1", b.Commit(map[string]string{"f": "1"}))
	n := newNode(t).start()
	a := n.attach(n.volume("v", urlOf(b), map[string]string{"ref": "v1"}))
	shows(t, a, "f", "1")
	b.Git("tag", "-f", "-a", "-m", "m", "v1", b.Commit(map[string]string{"f": "2"}))
	a.Demand()
	shows(t, a, "f", "2")
	if faults := n.faults("v"); faults != "" {
		t.Error(faults)
	}
}

func TestDepthAndSubmodulesAndNeverAndSharing(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	first := b.Grow("main", "f", "1")
	b.Grow("main", "f", "2")
	n := newNode(t).start()
	shallow := n.attach(n.volume("shallow", urlOf(b), map[string]string{"depth": "1"}))
	full := n.attach(n.volume("full", urlOf(b), nil))
	never := n.attach(n.volume("never", urlOf(b), map[string]string{"pull": "never"}))
	same := n.attach(n.volume("same", urlOf(b), nil))
	other := n.attach(n.volume("other", urlOf(b), map[string]string{"pull": "6m"}))
	if full.Dir() != same.Dir() || full.Dir() == other.Dir() || full.Dir() == never.Dir() || full.Dir() == shallow.Dir() {
		t.Errorf("shared are %s", []string{full.Dir(), same.Dir(), other.Dir(), never.Dir(), shallow.Dir()})
	}
	repositories, err := n.store.Repositories()
	n.must(err)
	for _, r := range repositories {
		_, err := os.Stat(filepath.Join(r.Dir(), "shallow"))
		if isShallow := err == nil; isShallow != (r.Depth == 1) {
			t.Errorf("depth %d, shallow %t", r.Depth, isShallow)
		}
	}
	b.Git("update-ref", "refs/heads/main", b.Git("commit-tree", "-m", "m", b.Git("mktree"))) // Nothing.
	link := "160000 commit " + first + "\tsub\n"
	tree := gitWith(t, b, link, "mktree", "--missing")
	b.SetRef("refs/heads/main", b.Git("commit-tree", "-m", "m", tree))
	for _, a := range []*readonly.Attachment{full, shallow, never} {
		a.Demand()
	}
	until(t, "the submodule is an empty directory", func() bool {
		entries, err := os.ReadDir(filepath.Join(full.Dir(), "sub"))
		return err == nil && len(entries) == 0 && read(full, "f") == ""
	})
	shows(t, shallow, "f", "")
	if read(never, "f") != "2" {
		t.Errorf("never: %q", read(never, "f"))
	}
	for _, handle := range []string{"shallow", "full", "never", "same", "other"} {
		n.must(n.followers.Detach(t.Context(), handle))
	}
	n.leavesNothing()
}
