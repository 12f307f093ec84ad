package worktree

import (
	"fmt"
	"path/filepath"
	"testing"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// largeTree is a tree of directories of 100 files each, of which some are another
// revision's.
func (v *volume) largeTree(directories, others, revision int) object.ID {
	v.t.Helper()
	var changes []history.Change
	for i := range directories * 100 {
		n := 0
		if i%(directories*100/max(others, 1)) == 0 && others > 0 {
			n = revision
		}
		blob, err := v.repo.Blob(fmt.Appendf(nil, "file %d of revision %d\n", i, n))
		v.do(err)
		changes = append(changes, history.Change{Path: fmt.Sprintf("d%d/e%d/f%d", i/1000, i/100, i), Mode: object.Regular, Blob: blob})
	}
	tree, err := v.repo.Edit(object.ID{}, changes)
	v.do(err)
	v.do(v.repo.Flush())
	return tree
}

// BenchmarkMove moves a tree of 100,000 files by ten of them, as the driver does and as
// git does. The driver's is durable when it ends, git's is not.
func BenchmarkMove(b *testing.B) {
	v := newVolume(b)
	trees := []object.ID{v.largeTree(1000, 10, 1), v.largeTree(1000, 10, 2)}
	b.Run("driver", func(b *testing.B) {
		m := v.mover(&intents{})
		moved, err := m.Move(b.Context(), v.root, trees[1])
		v.do(err)
		n := 0
		for b.Loop() {
			m.Memory = moved.Memory
			moved, err = m.Move(b.Context(), trees[(n+1)%2], trees[n%2])
			v.do(err)
			if len(moved.Written) != 10 {
				b.Fatalf("written %q, conflicts %q", moved.Written, moved.Conflicts)
			}
			n++
		}
	})
	b.Run("git", func(b *testing.B) {
		peer := *v
		peer.dir = filepath.Join(b.TempDir(), "peer")
		mkdirs(b, peer.dir)
		peer.git = append(peer.git[:len(peer.git):len(peer.git)], "GIT_WORK_TREE="+peer.dir, "GIT_INDEX_FILE="+peer.dir+".index")
		var commits []string
		for _, tree := range trees {
			commits = append(commits, peer.run("commit-tree", "-m", "test", tree.String())[:40])
		}
		peer.run("checkout", "-q", "-f", "--detach", commits[1])
		n := 0
		for b.Loop() {
			peer.run("checkout", "-q", "--detach", commits[n%2])
			n++
		}
	})
}

// BenchmarkFreshCheckout makes a checkout of 10,000 files, durable when it ends, and as
// git does.
func BenchmarkFreshCheckout(b *testing.B) {
	v := newVolume(b)
	tree := v.largeTree(100, 0, 0)
	b.Run("driver", func(b *testing.B) {
		for b.Loop() {
			base := b.TempDir()
			c := &Checkout{Dir: filepath.Join(base, "tree"), Note: filepath.Join(base, "note"), Source: v.repo}
			if _, err := c.Follow(b.Context(), tree, tree); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("git", func(b *testing.B) {
		for b.Loop() {
			peer := *v
			peer.dir = filepath.Join(b.TempDir(), "peer")
			mkdirs(b, peer.dir)
			peer.git = append(peer.git[:len(peer.git):len(peer.git)], "GIT_WORK_TREE="+peer.dir, "GIT_INDEX_FILE="+peer.dir+".index")
			peer.run("read-tree", tree.String())
			peer.run("checkout-index", "-a", "-f", "-q")
		}
	})
}

// BenchmarkReplayAll looks at all of a fresh tree of 10,000 files.
func BenchmarkReplayAll(b *testing.B) {
	v := newVolume(b)
	moved, err := v.mover(&intents{}).Move(b.Context(), v.root, v.largeTree(100, 0, 0))
	v.do(err)
	v.memory = moved.Memory
	v.setEntry("d1/e10/f1001", metadata.Entry{Kind: metadata.File, Mode: metadata.Set(0o600)})
	for b.Loop() {
		if _, err := v.tree.ReplayAll(b.Context(), v.replayOf()); err != nil {
			b.Fatal(err)
		}
	}
}
