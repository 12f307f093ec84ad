package remote

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// killedAtPush has git be killed, as for memory, before or after it has pushed.
func killedAtPush(t *testing.T, last string) func(*Settings) {
	t.Helper()
	return withGit(t, `PATH=${PATH#*:}
case "$*" in
"push "*) `+last+`; kill -9 $$;;
*) exec git "$@";;
esac`)
}

// TestKilledPush: a git that is killed here is no word of the remote's. What became of the
// push is told by the refs, and where they did not move it may be tried again.
func TestKilledPush(t *testing.T) {
	for name, row := range map[string]struct {
		last    string
		arrives bool
	}{"before it pushed": {":", false}, "after it pushed": {`git "$@"`, true}} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBare(t)
			p := newPushing(t, newCommand(t, killedAtPush(t, row.last)), b, local(t, b))
			b.Grow("main", "f", "0")
			ours := id(t, b.Grow("main.handle", "f", "1"))
			branch, metadata := p.update("refs/heads/main", "1"), p.update(metadataRef, "1")
			_, pushed := p.push(branch, &metadata)
			deleted := p.c.DeleteBranch(t.Context(), p.store.Dir, p.remote, "refs/heads/main.handle", ours)
			for what, err := range map[string]error{"the push": pushed, "the deletion": deleted} {
				if row.arrives && err != nil || !row.arrives && (err == nil || isDeclined(err)) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if got := b.Tip("refs/heads/main.handle") == ""; got != row.arrives {
				t.Errorf("that the branch is gone is %t", got)
			}
			if p.c.takesSingly(p.remote.URL) {
				t.Error("the remote is held to take no two refs at once")
			}
		})
	}
}

// TestKilledTransport has what carries a push be killed while the remote thinks about it.
func TestKilledTransport(t *testing.T) {
	for name, row := range map[string]struct {
		start    func(testing.TB, *gittest.Bare) Remote
		carriers []string // How the arguments of what is killed begin.
	}{
		"ssh":       {overSSH, []string{"ssh\x00"}},
		"send-pack": {overHTTP, []string{"git\x00send-pack", "/usr/lib/git-core/git\x00send-pack"}},
		"git":       {local, []string{"git\x00push"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := gittest.NewBare(t)
			p := newPushing(t, newCommand(t), b, row.start(t, b))
			b.Grow("main", "f", "0")
			ours := id(t, b.Grow("main.handle", "f", "1"))
			thinks := filepath.Join(t.TempDir(), "thinks")
			b.Hook("pre-receive", "touch "+thinks+"; while test -e "+thinks+"; do sleep 0.05; done; exit 1")
			ended := make(chan error, 1)
			go func() {
				ended <- p.c.DeleteBranch(t.Context(), p.store.Dir, p.remote, "refs/heads/main.handle", ours)
			}()
			until(t, "the hook runs", func() bool { _, err := os.Stat(thinks); return err == nil })
			var pids []int
			for _, line := range row.carriers {
				pids = append(pids, pidsOf(p.c, line)...)
			}
			if len(pids) == 0 {
				t.Fatalf("there is no %s among %q", name, ofCommand(p.c))
			}
			check(t, syscall.Kill(pids[0], syscall.SIGKILL))
			check(t, os.Remove(thinks))
			err := <-ended
			if err == nil || isDeclined(err) {
				t.Errorf("%v", err)
			}
			b.Hook("pre-receive", "")
			if err := p.c.DeleteBranch(t.Context(), p.store.Dir, p.remote, "refs/heads/main.handle", ours); err != nil {
				t.Errorf("once more: %v", err)
			}
		})
	}
}
