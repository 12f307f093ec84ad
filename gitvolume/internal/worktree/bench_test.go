package worktree

import (
	"fmt"
	"os"
	"testing"
)

// BenchmarkHundredThousandFiles is of 100,000 unchanged files in 1,000 directories: a
// scan of everything, one of ten paths, and git's own look at the same.
func BenchmarkHundredThousandFiles(b *testing.B) {
	v := newVolume(b)
	for d := range 1000 {
		dir := v.at(fmt.Sprintf("top-%02d/directory-%04d", d%32, d))
		mkdirs(b, dir)
		for f := range 100 {
			v.do(os.WriteFile(fmt.Sprintf("%s/file-%04d.txt", dir, f), []byte(fmt.Sprintln(d, f)), 0o644))
		}
	}
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
			some.Paths = append(some.Paths, fmt.Sprintf("top-%02d/directory-%04d/file-0005.txt", n*100%32, n*100))
		}
		b.ReportAllocs()
		for b.Loop() {
			if result := v.scan(some); result.Memory != v.memory {
				b.Fatal("something changed")
			}
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
