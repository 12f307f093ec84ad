package nodetest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/manyfiles"
	"liken.sh/csicommon/csitest/process"
)

// A pod writes more files than anybody should have to look at, and removes them again: all
// that arrives, and another pod's writes arrive meanwhile.
func TestAPodOfManyFiles(t *testing.T) {
	t.Parallel()
	count := manyfiles.Count(t)
	n, many, calm := hostileNode(t)
	target, other := n.Target(many.PV, 1), n.Target(calm.PV, 2)
	before, most := n.Plugin.Anonymous(), int64(0)
	// calmly has the calm pod write until what is awaited is so.
	calmly := func(what string, isSo func() bool) {
		t.Helper()
		manyfiles.Calmly(t, what, count, isSo, func(i int) {
			content := fmt.Sprint(what, i)
			write(t, other, "calm", content)
			process.Await(t, "the calm pod's write to arrive", func() bool { return n.has("calm", content) })
			most = max(most, n.Plugin.Anonymous())
		})
	}
	arrived := func() int {
		return len(strings.Fields(n.remote.Git("ls-tree", "-r", "--name-only", "hostile", "one/", "many/")))
	}
	written := make(chan error, 1)
	go func() { written <- manyfiles.Write(target, count) }()
	calmly("the arrival", func() bool { return len(written) == 1 && arrived() == count })
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	go func() {
		root, err := os.OpenRoot(target)
		if err == nil {
			err = errors.Join(root.RemoveAll("one"), root.RemoveAll("many"), root.Close())
		}
		written <- err
	}()
	calmly("the removal", func() bool { return len(written) == 1 && arrived() == 0 })
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	t.Logf("the plugin had %d MiB more at most", (most-before)>>20)
	n.MustUnpublish(many, 1)
	n.MustUnpublish(calm, 2)
}
