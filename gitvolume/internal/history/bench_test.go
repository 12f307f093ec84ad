package history

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// changedFiles is how many files each measured commit changes, in as many directories.
const changedFiles = 10

// BenchmarkCommit commits ten changed files of a tree, made durable and named by a ref;
// and, as its peer, has git do so in a working tree of the same files. The metric
// x-faster is how many times the peer took longer. With BENCH_FULL set, git takes part
// with a million files as well.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []struct{ files, dirs int }{{1000, 10}, {100_000, 1000}, {1_000_000, 10_000}} {
		b.Run(fmt.Sprintf("files=%d", size.files), func(b *testing.B) {
			r, peer := newRepository(b)
			tip := commit(b, r, grow(b, r, size.files, size.dirs))
			if err := r.SetRef("refs/heads/main", tip, object.ID{}); err != nil {
				b.Fatal(err)
			}
			var ours time.Duration
			b.Run("ours", func(b *testing.B) {
				n := 0
				for b.Loop() {
					n++
					tip = commitTen(b, r, tip, n, size.files, size.dirs)
				}
				ours = b.Elapsed() / time.Duration(n)
			})
			peer.fsckTip(tip)
			if size.files > 100_000 && os.Getenv("BENCH_FULL") == "" {
				return
			}
			work := newPeer(b, filepath.Join(b.TempDir(), "work"))
			peer.run("clone", "-q", peer.dir, work.dir)
			b.Run("git", func(b *testing.B) {
				n := 0
				for b.Loop() {
					n++
					work.commitTen(n, size.files, size.dirs)
				}
				b.ReportMetric(float64(b.Elapsed()/time.Duration(n))/float64(ours), "x-faster")
			})
		})
	}
}

// path is the path of a file of the tree.
func path(i, files, dirs int) string {
	return fmt.Sprintf("dir%05d/file%07d", i/(files/dirs), i)
}

// grow makes a tree of small files that differ.
func grow(b *testing.B, r *Repository, files, dirs int) object.ID {
	b.Helper()
	start := time.Now()
	changes := make([]Change, files)
	for i := range changes {
		changes[i] = file(b, r, path(i, files, dirs), fmt.Sprintf("content of file %d\n", i))
	}
	tree, err := r.Edit(object.ID{}, changes)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d files: made in %s", files, time.Since(start).Round(time.Millisecond))
	return tree
}

// commitTen changes ten files as the driver does.
func commitTen(b *testing.B, r *Repository, tip object.ID, n, files, dirs int) object.ID {
	b.Helper()
	tree, err := r.CommitTree(tip)
	if err != nil {
		b.Fatal(err)
	}
	changes := make([]Change, changedFiles)
	for i := range changes {
		changes[i] = file(b, r, path(i*files/changedFiles, files, dirs), fmt.Sprintf("change %d of file %d\n", n, i))
	}
	if tree, err = r.Edit(tree, changes); err != nil {
		b.Fatal(err)
	}
	next := commit(b, r, tree, tip)
	if err := r.SetRef("refs/heads/main", next, tip); err != nil {
		b.Fatal(err)
	}
	return next
}

// commitTen changes ten files as a person does.
func (p *peer) commitTen(n, files, dirs int) {
	p.t.Helper()
	for i := range changedFiles {
		name := filepath.Join(p.dir, path(i*files/changedFiles, files, dirs))
		if err := os.WriteFile(name, fmt.Appendf(nil, "peer's change %d of file %d\n", n, i), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	p.run("add", "-A")
	p.run("commit", "-q", "-m", "test")
}

// fsckTip checks the newest commit without reading all objects.
func (p *peer) fsckTip(tip object.ID) {
	p.t.Helper()
	p.run("fsck", "--connectivity-only", "--no-progress", tip.String())
}
