package history

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// forest is a tree of many files for benchmarks, a hundred in each directory.
type forest struct {
	*workshop
	size int
	base object.ID
	// round makes what is written anew each time, as no repository holds it before.
	round int
}

func newForest(b *testing.B, size int) *forest {
	b.Helper()
	f := &forest{workshop: newWorkshop(b), size: size}
	blob, err := f.repository.Blob([]byte("a file\n"))
	if err != nil {
		b.Fatal(err)
	}
	changes := make([]Change, size)
	for i := range changes {
		changes[i] = Change{Path: f.path(i), Mode: object.Regular, Blob: blob}
	}
	tree, err := f.repository.Edit(object.ID{}, changes)
	if err != nil {
		b.Fatal(err)
	}
	f.base = f.commitTree(b, tree)
	return f
}

func (f *forest) path(i int) string {
	if f.size > 100_000 {
		return fmt.Sprintf("top-%03d/directory-%03d/file-%07d", i/10_000, i/100%100, i)
	}
	return fmt.Sprintf("directory-%04d/file-%07d", i/100, i)
}

// grow makes ten commits of ten files on the base; which are those of every directory
// at a place in it, so that both sides change the same directories and no common file.
func (f *forest) grow(b *testing.B, place int) object.ID {
	b.Helper()
	tip := f.base
	tree, err := f.repository.CommitTree(tip)
	for i := range 10 {
		var changes []Change
		for j := range 10 {
			change := Change{Path: f.path(((i*10+j)*100 + place + i/5) % f.size), Mode: object.Regular}
			if err == nil {
				change.Blob, err = f.repository.Blob(fmt.Appendf(nil, "changed %d %d %d %d\n", f.round, place, i, j))
			}
			changes = append(changes, change)
		}
		if err == nil {
			tree, err = f.repository.Edit(tree, changes)
		}
		if err != nil {
			b.Fatal(err)
		}
		tip = f.commitTree(b, tree, tip)
	}
	return tip
}

// fork makes a new history that forks.
func (f *forest) fork(b *testing.B) Replay {
	b.Helper()
	f.round++
	replay := f.replay(f.base, f.grow(b, 0), f.grow(b, 50))
	if err := f.repository.Flush(); err != nil {
		b.Fatal(err)
	}
	return replay
}

// stopwatch adds up processor time, which a busy machine changes less than it does the
// time on the clock.
type stopwatch struct {
	who  int
	took time.Duration
}

func (s *stopwatch) now(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(s.who, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// run measures do, and stops the benchmark's own timer before and after.
func (s *stopwatch) run(b *testing.B, do func()) {
	b.Helper()
	before := s.now(b)
	b.StartTimer()
	do()
	b.StopTimer()
	s.took += s.now(b) - before
	b.ReportMetric(float64(s.took.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkRebase rebases ten commits of ten files over ten others. Its peer is git in
// a work tree.
func BenchmarkRebase(b *testing.B) {
	for _, size := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("driver/%d", size), func(b *testing.B) {
			f, watch := newForest(b, size), stopwatch{who: syscall.RUSAGE_SELF}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				replay := f.fork(b)
				watch.run(b, func() {
					got, err := f.repository.Rebase(b.Context(), replay)
					if err != nil || got.Replayed != 10 || f.merges > 0 {
						b.Fatalf("%+v, %v, %d merges by git", got, err, f.merges)
					}
				})
			}
		})
		if size > 100_000 {
			continue
		}
		b.Run(fmt.Sprintf("git/%d", size), func(b *testing.B) {
			f, watch := newForest(b, size), stopwatch{who: syscall.RUSAGE_CHILDREN}
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				replay := f.fork(b)
				f.git(b, f.tree, "checkout", "-q", "--detach", replay.Tip.String())
				watch.run(b, func() {
					f.git(b, f.tree, "-c", "merge.directoryRenames=false", "rebase", "-q", "--reapply-cherry-picks", "--empty=drop",
						"--onto", replay.Onto.String(), replay.Base.String(), replay.Tip.String())
				})
			}
		})
	}
}
