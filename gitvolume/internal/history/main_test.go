package history

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/gitvolume/internal/object"
)

// childEnv makes the test program one that commits to the repository it names until it
// is killed.
const childEnv = "HISTORY_TEST_COMMITS_TO"

// childLargeEnv has it commit large files with that, which take most of its time.
const childLargeEnv = "HISTORY_TEST_COMMITS_LARGE"

// childRecoverEnv has it recover a repository, and say what became of that.
const childRecoverEnv = "HISTORY_TEST_RECOVERS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		panic(commitForEver(dir, os.Getenv(childLargeEnv) != ""))
	}
	if dir := os.Getenv(childRecoverEnv); dir != "" {
		_, err := Recover(dir)
		fmt.Println(err)
		return
	}
	// Most of the time of a random test goes to git; -rapid.checks asks for more of them.
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	mountns.MainInMemory(m)
}

// What a child tells of a commit: that it is about to be made durable and named by the
// ref, and that it is.
const (
	naming = "naming"
	named  = "named"
)

// commitForEver makes commits that each hold their own number, and tells of each on its
// output.
func commitForEver(dir string, large bool) error {
	if err := Create(dir); err != nil {
		return err
	}
	r, err := Open(dir)
	if err != nil {
		return err
	}
	tip, _ := r.Ref("refs/heads/main")
	tree := object.ID{}
	if !tip.IsZero() {
		tree = must(r.CommitTree(tip))
	}
	for n := 1; ; n++ {
		size := int64(0)
		if large {
			size = int64(n%3) * streamAt
		}
		blob := must(r.BlobFrom(noise(size), size))
		number := must(r.Blob(fmt.Append(nil, os.Getpid(), n)))
		tree = must(r.Edit(tree, []Change{{"large", object.Regular, blob}, {fmt.Sprintf("d/%d/f", n%10), object.Regular, number}}))
		next := must(r.Commit(Draft{Tree: tree, Author: someone(), Committer: someone(), Message: fmt.Sprint(n), Parents: parentsOf(tip)}))
		if _, err := fmt.Fprintln(os.Stdout, naming, next); err != nil {
			return err
		}
		if err := r.SetRef("refs/heads/main", next, tip); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, named, next); err != nil {
			return err
		}
		tip = next
	}
}

func parentsOf(tip object.ID) []object.ID {
	if tip.IsZero() {
		return nil
	}
	return []object.ID{tip}
}
