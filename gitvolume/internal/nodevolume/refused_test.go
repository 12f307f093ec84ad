package nodevolume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

// TestRefusedPush is C36: a refusal that no rebase cures is told in the remote's words and
// tried again, less often each time, and makes no side branch.
func TestRefusedPush(t *testing.T) {
	const words = "GH006: Protected branch update failed"
	for name, hook := range map[string]struct{ name, script string }{
		"of everything":  {"pre-receive", "date +%s%N >>calls; echo '" + words + "' >&2; exit 1"},
		"of main alone":  {"update", "test $1 = refs/heads/main || exit 0; date +%s%N >>calls; echo '" + words + "' >&2; exit 1"},
		"by the objects": {"pre-receive", "date +%s%N >>calls; echo 'remote: File f is 123 MB; " + words + "' >&2; exit 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := gittest.NewBare(t)
			put(t, upstream, "main", files{"f": "1"})
			p := newProcess(t, newDir(t))
			v := p.volume(wants(upstream.Dir)).publish()
			before := upstream.Refs()
			upstream.Hook(hook.name, hook.script)
			v.write("f", "2")
			v.soon(report.PushFailed)
			if message := v.report.Abnormal()[0].Message; !strings.Contains(message, words) {
				t.Errorf("it says %q, want the remote's words", message)
			}
			calls := func() []string {
				content, err := os.ReadFile(filepath.Join(upstream.Dir, "calls"))
				check(t, err)
				return strings.Fields(string(content))
			}
			within(t, 2*time.Minute, func() bool { return len(calls()) > 1 }, func() string { return "it is not tried again" })
			at := calls()
			if gap := at[1][:len(at[1])-9]; gap < at[0][:len(at[0])-9] || len(at) > 2 {
				t.Errorf("it was tried at %q", at)
			}
			after := upstream.Refs()
			if len(after) != len(before) || after["refs/heads/main"] != before["refs/heads/main"] {
				t.Errorf("the refs were %v and are %v", before, after)
			}
			upstream.Hook(hook.name, "")
			v.TakeCredential() // Or in 20 seconds.
			arrives(t, upstream, "main", files{"f": "2"})
			v.soon()
			v.stop()
			if got := upstream.Git("rev-list", "--count", "main"); got != "2" {
				t.Errorf("%s commits, want 2", got)
			}
			if n := p.events.count("GitVolumeRebased"); n != 0 {
				t.Errorf("%d rebases", n)
			}
			p.end()
		})
	}
}
