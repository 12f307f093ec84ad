package main

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/manyfiles"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// A pod writes more files than anybody should have to look at. While its copy is measured and
// removed, other pods come and go, and the plugin has hardly more memory than before.
func TestACopyOfManyFiles(t *testing.T) {
	t.Parallel()
	count := manyfiles.Count(t)
	n := newNode(t, "many", "calm")
	n.Start(sweepSoon...)
	n.mustPublish("calm", 1)
	n.mustUnpublish("calm", 1)
	n.mustPublish("many", 2)
	if err := manyfiles.Write(n.Target("many", 2), count); err != nil {
		t.Fatal(err)
	}
	n.Plugin.Stop() // A plugin that was started again measures at once.
	n.Start(sweepSoon...)
	n.mustPublish("calm", 1)
	n.mustUnpublish("calm", 1)
	before, most := n.Plugin.Anonymous(), int64(0)
	// calmly has pods come and go until what is awaited is so.
	calmly := func(what string, isSo func() bool) {
		t.Helper()
		manyfiles.Calmly(t, what, count, isSo, func(int) {
			rig.WantCode(t, n.Publish(volume("calm"), rig.Pod(1)), codes.OK)
			rig.WantCode(t, n.Unpublish(volume("calm"), rig.Pod(1)), codes.OK)
			most = max(most, n.Plugin.Anonymous())
		})
	}
	calmly("the measure", func() bool { return n.Figure("per_node_copy_bytes") >= float64(count)*4096 })
	n.mustUnpublish("many", 2)
	n.API.DeleteVolume("many")
	calmly("the removal", func() bool {
		entries, err := os.ReadDir(filepath.Join(n.Store, "trash"))
		return !exists(n.copyDir("many")) && err == nil && len(entries) == 0
	})
	process.Await(t, "the removal to be counted", func() bool { return n.Figure("per_node_copies_removed_total") == 1 })
	if grown := (most - before) >> 20; grown > 16 && !process.Raced {
		t.Errorf("the plugin had %d MiB more for %d files", grown, count)
	}
	t.Logf("the plugin had %d MiB more at most", (most-before)>>20)
}
