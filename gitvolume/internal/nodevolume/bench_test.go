package nodevolume_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

// large is a repository with many files of some length each, in directories of a hundred.
func large(t testing.TB, number int) *gittest.Bare {
	t.Helper()
	upstream := gittest.NewBare(t)
	var stream strings.Builder
	stream.WriteString("commit refs/heads/main\ncommitter t <t@example.invalid> 1700000000 +0000\ndata 2\nup\n")
	for i := range number {
		content := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 20+i%80)
		fmt.Fprintf(&stream, "M 100644 inline d%d/e%d/f%d\ndata %d\n%s\n", i/1000, i/100, i, len(content), content)
	}
	upstream.Import(stream.String())
	upstream.Git("repack", "-adq")
	return upstream
}

// BenchmarkFirstStage is from nothing to a tree that an application can have, beside what
// git takes to clone the same repository: x-clone has to be below 1.15.
func BenchmarkFirstStage(b *testing.B) {
	upstream := large(b, 10_000)
	var staged, cloned time.Duration
	for b.Loop() {
		dir := newDir(b)
		p := newProcess(b, dir)
		v := p.volume(wants(upstream.Dir))
		settle()
		began := time.Now()
		check(b, v.Publish(b.Context()))
		staged += time.Since(began)
		v.stop()
		p.end()
		check(b, os.RemoveAll(dir))
		settle()

		began = time.Now()
		clone := exec.Command("git", "clone", "-q", "file://"+upstream.Dir, dir)
		clone.Env = gittest.Environment(filepath.Join(filepath.Dir(upstream.Dir), "gitconfig"))
		if out, err := clone.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		cloned += time.Since(began)
		check(b, os.RemoveAll(dir))
	}
	b.ReportMetric(staged.Seconds()/float64(b.N), "s/stage")
	b.ReportMetric(cloned.Seconds()/float64(b.N), "s/clone")
	b.ReportMetric(staged.Seconds()/cloned.Seconds(), "x-clone")
}

// settle has the disk do what was written before, which is not to be measured.
func settle() { _ = exec.Command("sync").Run() }

// BenchmarkToRemote is the time from the end of a quiesce to the commit on a remote on the
// loopback, of one changed file in a tree of a thousand.
func BenchmarkToRemote(b *testing.B) {
	upstream := large(b, 1000)
	server := gittest.StartHTTP(b, filepath.Dir(upstream.Dir), gittest.HTTPOptions{})
	p := newProcess(b, newDir(b))
	v := p.volume(wants(server.URL("/r.git"))).publish()
	var took time.Duration
	n := 0
	for b.Loop() {
		n++
		tip := upstream.Tip("refs/heads/main")
		v.write("d0/e0/f0", fmt.Sprint(n))
		quiet := time.Now().Add(quiesce)
		within(b, 2*time.Minute, func() bool { return upstream.Tip("refs/heads/main") != tip }, func() string { return "nothing arrives" })
		took += time.Since(quiet)
	}
	v.stop()
	p.end()
	b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms/arrival")
}
