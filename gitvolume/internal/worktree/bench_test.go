package worktree

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
)

// BenchmarkHundredThousandFiles is of 100,000 unchanged files in 1,000 directories: a
// scan of everything, one of ten paths, git's own look at the same, and what it takes to
// watch them while nothing happens.
func BenchmarkHundredThousandFiles(b *testing.B) {
	v := newVolume(b)
	v.makeMany()
	// What is racy has to be read again; here it is not about that.
	request := v.request()
	request.Blobs = Hasher{}
	v.memory = v.scan(request).Memory
	var settled []Edit
	for path, e := range v.memory.All() {
		if e.Racy {
			e.Racy = false
			settled = append(settled, Edit{path, e})
		}
	}
	v.memory = v.memory.With(settled)
	request.Memory = v.memory
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if result := v.scan(request); len(result.Changes) != 0 || result.Memory != v.memory {
				b.Fatal("something changed")
			}
		}
	})
	b.Run("ten paths", func(b *testing.B) {
		some := request
		some.Subtrees = nil
		for n := range 10 {
			some.Paths = append(some.Paths, oneOfMany(n*100)+"/file-0005.txt")
		}
		b.ReportAllocs()
		for b.Loop() {
			if result := v.scan(some); result.Memory != v.memory {
				b.Fatal("something changed")
			}
		}
	})
	b.Run("idle", func(b *testing.B) {
		for b.Loop() {
			v.idle(b)
		}
	})
	v.gitAdds()
	b.Run("git status", func(b *testing.B) {
		v.run("status", "--porcelain")
		for b.Loop() {
			v.run("status", "--porcelain")
		}
	})
}

// oneOfMany is the n-th directory of those that makeMany makes.
func oneOfMany(n int) string { return fmt.Sprintf("top-%02d/directory-%04d", n%32, n) }

// makeMany makes the files, as cheaply as that can be: there are a hundred contents.
func (v *volume) makeMany() {
	v.t.Helper()
	const makers = 4
	failed := make([]error, makers)
	var all sync.WaitGroup
	for maker := range makers {
		all.Go(func() {
			for n := maker; n < 1000 && failed[maker] == nil; n += makers {
				failed[maker] = makeFiles(v.at(oneOfMany(n)))
			}
		})
	}
	all.Wait()
	for _, err := range failed {
		v.do(err)
	}
}

func makeFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for f := range 100 {
		if err := os.WriteFile(fmt.Sprintf("%s/file-%04d.txt", dir, f), []byte(strconv.Itoa(f)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
