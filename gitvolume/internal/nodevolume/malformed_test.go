package nodevolume_test

import (
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

// A commit of upstream whose tree means nothing is no fault of the node's repository, which
// stays; what is written is kept meanwhile, and arrives when upstream is well.
func TestMalformedUpstream(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	p := newProcess(t, newDir(t))
	v := p.volume(wants(upstream.Dir)).publish()
	good := upstream.Tip("refs/heads/main")
	odd := upstream.Tree("0000000000100644", "a", upstream.Git("rev-parse", "main:a"))
	bad := upstream.Git("commit-tree", "-m", "odd", "-p", good, odd)
	upstream.SetRef("refs/heads/main", bad)
	v.write("b", "1")
	v.soon(report.PushFailed)
	if message := v.report.Abnormal()[0].Message; !strings.Contains(message, "malformed") {
		t.Errorf("it says %q", message)
	}
	if aside, _ := filepath.Glob(filepath.Join(p.store.Dir(), "aside", "*")); len(aside) > 0 {
		t.Errorf("%q was set aside", aside)
	}
	upstream.SetRef("refs/heads/main", upstream.Git("commit-tree", "-m", "mended", "-p", bad, good+"^{tree}"))
	v.TakeCredential()
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.soon()
	v.stop()
	p.end()
}
