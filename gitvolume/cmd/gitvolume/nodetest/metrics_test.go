package nodetest

import (
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/csitest/process"
)

const metricsPage = "../../../docs/reference/metrics.md"

// ofWriting are the series of what only writeable volumes do.
func ofWriting(text string) map[string]page.Series {
	_, section, _ := strings.Cut(text, "## Of a writeable volume\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found := page.Documented(section)
	for _, work := range []string{"commit", "rebase", "push"} {
		name := "git_csi_" + work + "_duration_seconds"
		found[name] = page.Documented(text)[name]
	}
	return found
}

// ofTheNode is the page without the series of a controller.
func ofTheNode(t *testing.T, page string) string {
	t.Helper()
	before, rest, hasController := strings.Cut(page, "\n## Of the controller\n")
	_, after, hasMore := strings.Cut(rest, "\n## ")
	if !hasController || !hasMore {
		t.Fatal("the page has no section of the controller between others")
	}
	return before + "\n## " + after
}

func TestTheMetricsPageListsEverySeries(t *testing.T) {
	t.Parallel()
	text := ofTheNode(t, page.Read(t, metricsPage))
	writing := ofWriting(text)
	if len(writing) < 8 {
		t.Fatalf("the page has of writeable volumes only %v", writing)
	}
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.Start()
	n.MustPublish(n.volume("v"), 1)
	process.Await(t, "a first measurement", func() bool { return n.Scrape()["git_csi_store_bytes"] != nil })
	page.CompareSeries(t, page.Documented(text), n.Scrape(), writing)
}

// What the store's disk has is that of this moment.
func TestTheSpaceOfTheStoresDisk(t *testing.T) {
	mountns.Require(t)
	t.Parallel()
	const size, taken = 16 << 20, 4 << 20
	n := newNode(t)
	n.inMemory("16m")
	n.Start()
	capacity, before := n.Figure("git_csi_store_capacity_bytes"), n.Figure("git_csi_store_available_bytes")
	if capacity != size || before <= taken || before > size {
		t.Errorf("the store has %v of %v bytes, want nearly all of %d", before, capacity, size)
	}
	n.fill(taken)
	if after := n.Figure("git_csi_store_available_bytes"); after > before-taken {
		t.Errorf("of %v bytes %v are left when %d more are taken", before, after, taken)
	}
}
