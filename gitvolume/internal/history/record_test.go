package history

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// recordOf makes a record of one path.
func recordOf(t *testing.T, path string, mode uint32) metadata.Record {
	t.Helper()
	record, err := metadata.Record{}.Apply(metadata.Delta{path: {Kind: metadata.File, Mode: metadata.Set(mode)}})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func recording(tip object.ID, branch string, record metadata.Record) Recording {
	return Recording{Keep: tip, Parent: tip, Branch: branch, Record: record, Committer: someone()}
}

func TestRecord(t *testing.T) {
	r, peer := newRepository(t)
	branches := []string{"refs/heads/feature", "refs/heads/feature/foo", "refs/heads/feature%2Ffoo", "refs/heads/main.pv-x",
		"refs/heads/Grün", "refs/heads/a+b", "refs/heads/--upload-pack=id"}
	var tip object.ID
	for i, branch := range branches {
		next, err := r.CommitRecord(recording(tip, branch, recordOf(t, "a", uint32(i))))
		if err != nil {
			t.Fatal(err)
		}
		if parents, err := r.Parents(next); err != nil || !tip.IsZero() && (len(parents) != 1 || parents[0] != tip) {
			t.Errorf("the parents are %v, %v, want %s", parents, err, tip)
		}
		tip = next
	}
	for i, branch := range branches {
		record, err := r.Record(tip, branch)
		if mode, _ := record.Entry("a").Mode.Get(); err != nil || record.Len() != 1 || mode != uint32(i) {
			t.Errorf("the record of %q is %q, %v", branch, record.Format(), err)
		}
	}
	if record, err := r.Record(tip, "refs/heads/other"); err != nil || record.Len() != 0 {
		t.Errorf("a branch that has none has %q, %v", record.Format(), err)
	}
	if record, err := r.Record(object.ID{}, branches[0]); err != nil || record.Len() != 0 {
		t.Errorf("without a ref there is %q, %v", record.Format(), err)
	}
	if err := r.SetRef(MetadataRef, tip, object.ID{}); err != nil {
		t.Fatal(err)
	}
	listed := peer.run("ls-tree", "--name-only", MetadataRef)
	if !strings.Contains(listed, "refs%2Fheads%2Ffeature%252Ffoo\n") || strings.Count(listed, "\n")+1 != len(branches) {
		t.Errorf("the tree has\n%s", listed)
	}
	peer.fsck()
}

func TestRecordIsCommittedOnlyWhenItChanged(t *testing.T) {
	r, _ := newRepository(t)
	commit := func(tip object.ID, branch string, record metadata.Record) object.ID {
		t.Helper()
		next, err := r.CommitRecord(recording(tip, branch, record))
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	if got := commit(object.ID{}, "refs/heads/a", metadata.Record{}); !got.IsZero() {
		t.Errorf("an empty first record makes the commit %s", got)
	}
	tip := commit(object.ID{}, "refs/heads/a", recordOf(t, "f", 0o600))
	if got := commit(tip, "refs/heads/a", recordOf(t, "f", 0o600)); got != tip {
		t.Errorf("the same record makes the commit %s", got)
	}
	if got := commit(tip, "refs/heads/b", metadata.Record{}); got != tip {
		t.Errorf("the empty record of another branch makes the commit %s", got)
	}
	if got := commit(tip, "refs/heads/a", recordOf(t, "f", 0o640)); got == tip {
		t.Error("another record makes no commit")
	}
	both := commit(tip, "refs/heads/b", recordOf(t, "f", 0o600))
	without := commit(both, "refs/heads/a", metadata.Record{})
	if record, err := r.Record(without, "refs/heads/a"); err != nil || record.Len() != 0 || without == both {
		t.Errorf("the record is %q, %v, want an empty one", record.Format(), err)
	}
	if record, err := r.Record(without, "refs/heads/b"); err != nil || record.Len() != 1 {
		t.Errorf("the other record is %q, %v", record.Format(), err)
	}
}

// TestRecordOfTwoVolumes has two volumes record at the same time, round for round, each
// rebuilding on what the remote took (C47 d).
func TestRecordOfTwoVolumes(t *testing.T) {
	r, _ := newRepository(t)
	var remote object.ID
	own := map[string]metadata.Record{}
	for round := range 20 {
		seen := remote
		for _, branch := range []string{"refs/heads/a", "refs/heads/a.pv-b"} {
			path := fmt.Sprint("file-", round)
			base, err := r.Record(seen, branch)
			if err != nil {
				t.Fatal(err)
			}
			ours, err := base.Apply(metadata.Delta{path: {Kind: metadata.File, Mode: metadata.Set(0o600)}})
			if err != nil {
				t.Fatal(err)
			}
			// The first push of the round wins; the other finds the ref moved.
			theirs, err := r.Record(remote, branch)
			if err != nil {
				t.Fatal(err)
			}
			if own[branch], err = theirs.Apply(metadata.Diff(base, ours)); err != nil {
				t.Fatal(err)
			}
			if remote, err = r.CommitRecord(recording(remote, branch, own[branch])); err != nil {
				t.Fatal(err)
			}
		}
	}
	for branch, want := range own {
		if got, err := r.Record(remote, branch); err != nil || !got.Equal(want) || got.Len() != 20 {
			t.Errorf("of %q there is %q, %v", branch, got.Format(), err)
		}
	}
}

// TestRecordUnusable finds what somebody else put on the metadata ref (C47 f).
func TestRecordUnusable(t *testing.T) {
	r, _ := newRepository(t)
	const branch = "refs/heads/main"
	blob := func(content string) object.ID { return must(r.Blob([]byte(content))) }
	tree := func(changes ...Change) object.ID {
		return commit(t, r, must(r.Edit(object.ID{}, changes)))
	}
	named := func(content string) object.ID {
		return tree(Change{Path: "refs%2Fheads%2Fmain", Mode: object.Regular, Blob: blob(content)})
	}
	twice := func(name string) object.ID {
		one := newNode(name, object.Regular, blob("git-csi-metadata 1\n"))
		return commit(t, r, must(r.putTree([]node{one, one})))
	}
	missing := must(object.Parse(strings.Repeat("12", 20)))
	for name, row := range map[string]struct {
		tip  object.ID
		want error
		// rebuilt says that a record can be made on it, keeping the others'.
		rebuilt bool
	}{
		"a blob":                     {blob("garbage"), ErrRecord, false},
		"a tree":                     {must(r.CommitTree(named("x"))), ErrRecord, false},
		"another project's commit":   {tree(Change{Path: "README.md", Mode: object.Regular, Blob: blob("# hello\n")}), ErrRecord, false},
		"directories for branches":   {tree(Change{Path: "refs%2Fheads%2Fx/main", Mode: object.Regular, Blob: blob("x")}), ErrRecord, false},
		"a link for a record":        {tree(Change{Path: "refs%2Fheads%2Fmain", Mode: object.Symlink, Blob: blob("/etc/passwd")}), ErrRecord, false},
		"one record twice":           {twice("refs%2Fheads%2Fmain"), ErrRecord, false},
		"another's record twice":     {twice("refs%2Fheads%2Fx"), ErrRecord, false},
		"an empty record":            {named(""), ErrRecord, true},
		"a broken record":            {named("git-csi-metadata 1\nfile 0600\n"), ErrRecord, true},
		"conflict markers":           {named("<<<<<<< ours\n"), ErrRecord, true},
		"a directory named .git":     {named("git-csi-metadata 1\nempty - - - \"a/.GIT/hooks\"\n"), ErrRecord, true},
		"a record of a newer driver": {named("git-csi-metadata 2\n"), metadata.ErrVersion, true},
		"an object that is not here": {missing, ErrMissing, false},
	} {
		t.Run(name, func(t *testing.T) {
			record, err := r.Record(row.tip, branch)
			if !errors.Is(err, row.want) || record.Len() != 0 {
				t.Errorf("the record is %q, %v, want %v", record.Format(), err, row.want)
			}
			if errors.Is(err, ErrRecord) && !errors.Is(row.want, ErrRecord) {
				t.Errorf("%v would be replaced", err)
			}
			_, err = r.CommitRecord(recording(row.tip, branch, recordOf(t, "a", 0o600)))
			if (err == nil) != row.rebuilt {
				t.Errorf("a commit on it gives %v", err)
			}
		})
	}
	// What is a commit of something else is gone on with, without its content.
	foreign := tree(Change{Path: "README.md", Mode: object.Regular, Blob: blob("# hello\n")})
	anew := recording(object.ID{}, branch, recordOf(t, "a", 0o600))
	anew.Parent = foreign
	tip, err := r.CommitRecord(anew)
	if err != nil {
		t.Fatal(err)
	}
	if record, err := r.Record(tip, branch); err != nil || record.Len() != 1 {
		t.Errorf("the record made anew is %q, %v", record.Format(), err)
	}
	if contains, err := r.Contains(tip, foreign); err != nil || !contains {
		t.Errorf("the ref would not be fast-forwarded: %v", err)
	}
	if _, err := r.CommitRecord(recording(object.ID{}, "main", recordOf(t, "a", 0o600))); !errors.Is(err, ErrRefName) {
		t.Errorf("a short name gives %v", err)
	}
}
