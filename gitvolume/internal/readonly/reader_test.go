package readonly_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/readonly"
)

var (
	readerFiles   = flag.Int("files", 50, "how many files the reader of an update reads")
	readerUpdates = flag.Int("updates", 3, "how many updates it meets")
)

// TestReaderMeetsNoGap reads all files again and again while they are updated (C49).
func TestReaderMeetsNoGap(t *testing.T) {
	t.Parallel()
	u := &upstream{content: revision(0), files: *readerFiles}
	n := newNode(t)
	n.connect = u.of
	n.start()
	a := n.attach(n.volume("v", url, nil))
	held, err := os.OpenRoot(a.Dir() + "/d1") // As a mount of the directory by itself.
	n.must(err)
	defer held.Close()
	var done atomic.Bool
	var passes, torn atomic.Int64
	var readers sync.WaitGroup
	defer readers.Wait()
	defer done.Store(true)
	for range 2 {
		readers.Go(func() {
			for ; !done.Load(); passes.Add(1) {
				for i := range *readerFiles {
					text, err := os.ReadFile(filepath.Join(a.Dir(), fileName(i)))
					if err != nil || !isRevision(string(text)) {
						torn.Add(1)
						t.Errorf("%s holds %d bytes, %v: %.40q", fileName(i), len(text), err, text)
						return
					}
				}
			}
		})
	}
	for i := range *readerUpdates {
		before := passes.Load()
		u.push(revision(i + 1))
		a.Demand()
		within(t, 2*time.Minute, "an update", func() bool { return isUpdated(a, i+1) || torn.Load() > 0 })
		within(t, 2*time.Minute, "a pass", func() bool { return passes.Load() > before || torn.Load() > 0 })
	}
	done.Store(true)
	readers.Wait()
	last := revision(*readerUpdates)
	until(t, "the held directory is up to date", func() bool {
		text, err := held.ReadFile("f1")
		return err == nil && string(text) == last
	})
	if faults := n.faults("v"); faults != "" {
		t.Error(faults)
	}
}

// TestReaderOfManyFiles reads 6,000 files in a loop while all of them are updated (C49). That
// is much work on a busy machine, for which it has long.
func TestReaderOfManyFiles(t *testing.T) {
	t.Parallel()
	const files = 6000
	u := &upstream{content: "0000000\n", files: files}
	n := newNode(t)
	n.connect = u.of
	n.start()
	a := n.attach(n.volume("v", url, nil))
	var stop, failed atomic.Bool
	var passes atomic.Int64
	var reader sync.WaitGroup
	defer reader.Wait()
	defer stop.Store(true)
	reader.Go(func() {
		last := make([]string, files)
		for ; !stop.Load(); passes.Add(1) {
			for i := range files {
				text := read(a, fileName(i))
				if len(text) != 8 || text < last[i] {
					failed.Store(true)
					t.Errorf("%s has %q after %q", fileName(i), text, last[i])
					return
				}
				last[i] = text
			}
		}
	})
	until(t, "a pass", func() bool { return passes.Load() > 0 || failed.Load() })
	const content = "0000001\n"
	u.push(content)
	a.Demand()
	updated := 0 // So many of the first files.
	within(t, 10*time.Minute, "the update", func() bool {
		for updated < files && read(a, fileName(updated)) == content {
			updated++
		}
		return updated == files || failed.Load()
	})
	before := passes.Load()
	until(t, "a pass", func() bool { return passes.Load() > before || failed.Load() })
}

// isUpdated tells whether all files are of the revision.
func isUpdated(a *readonly.Attachment, i int) bool {
	want := revision(i)
	for file := range *readerFiles {
		if read(a, fileName(file)) != want {
			return false
		}
	}
	return read(a, "f") == want
}

// revision is a text of several pages, all of one number.
func revision(i int) string { return strings.Repeat(fmt.Sprintf("%07d\n", i), 2000) }

func isRevision(text string) bool {
	return len(text) == 16000 && text == strings.Repeat(text[:8], 2000)
}

// TestRestartUnderManyVolumes follows all of them again at once, and touches no tree.
func TestRestartUnderManyVolumes(t *testing.T) {
	t.Parallel()
	u := &upstream{content: "1"}
	n := newNode(t)
	n.connect = u.of
	n.start()
	before := map[string]os.FileInfo{}
	for i := range 50 {
		handle := fmt.Sprintf("v%d", i)
		a := n.attach(n.volume(handle, fmt.Sprintf("https://example.invalid/r%d", i/5), map[string]string{"pull": "24h"}))
		before[handle] = stat(t, a)
	}
	u.push("2")
	resumed := n.restart()
	for handle, a := range resumed {
		shows(t, a, "f", "2")
		if !os.SameFile(before[handle], stat(t, a)) {
			t.Errorf("%s has another directory", handle)
		}
	}
	if len(resumed) != 50 {
		t.Errorf("%d are resumed", len(resumed))
	}
	for handle := range resumed {
		n.must(n.followers.Detach(t.Context(), handle))
	}
	n.leavesNothing()
}

func stat(t testing.TB, a *readonly.Attachment) os.FileInfo {
	t.Helper()
	info, err := os.Stat(a.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// BenchmarkRepeatedPublish is what a publish of a volume that is published takes.
func BenchmarkRepeatedPublish(b *testing.B) {
	u := &upstream{content: "1"}
	n := newNode(b)
	n.connect = u.of
	n.start()
	v := n.volume("v", url, nil)
	v.Credential = token(b, "one")
	a := n.attach(v)
	again := token(b, "one")
	for b.Loop() {
		a.TakeCredential(again)
	}
}
