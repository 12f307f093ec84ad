package history

import (
	"fmt"
	"os"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// childEnv makes the test program one that commits to the repository it names until it
// is killed.
const childEnv = "HISTORY_TEST_COMMITS_TO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		panic(commitForEver(dir))
	}
	os.Exit(m.Run())
}

// commitForEver makes commits that each hold their own number, and tells of each on
// its output when it is durable.
func commitForEver(dir string) error {
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
		blob := must(r.BlobFrom(noise(int64(n%3)*streamAt), int64(n%3)*streamAt))
		number := must(r.Blob(fmt.Append(nil, os.Getpid(), n)))
		tree = must(r.Edit(tree, []Change{{"large", object.Regular, blob}, {fmt.Sprintf("d/%d/f", n%10), object.Regular, number}}))
		next := must(r.Commit(Draft{Tree: tree, Author: someone(), Committer: someone(), Message: fmt.Sprint(n), Parents: parentsOf(tip)}))
		if err := r.SetRef("refs/heads/main", next, tip); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, next); err != nil {
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
