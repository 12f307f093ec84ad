package worktree

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
)

func lockThread() { runtime.LockOSThread() }

func e2t(seconds int64) time.Time { return time.Unix(seconds, 0) }

// countingBlobs remembers what it is given; meanwhile, if there is one, is called while
// a file is read.
type countingBlobs struct {
	Blobs
	contents  []string
	meanwhile func()
}

func (c *countingBlobs) Blob(content []byte) (object.ID, error) {
	c.contents = append(c.contents, string(content))
	if c.meanwhile != nil {
		c.meanwhile()
	}
	return c.Blobs.Blob(content)
}

func (c *countingBlobs) BlobFrom(from io.Reader, size int64) (object.ID, error) {
	c.contents = append(c.contents, "a large file")
	if c.meanwhile != nil {
		c.meanwhile()
	}
	return c.Blobs.BlobFrom(from, size)
}

// TestAFileThatChangesWhileItIsRead is C20 (a).
func TestAFileThatChangesWhileItIsRead(t *testing.T) {
	for _, row := range []struct {
		name   string
		before string
		change func(path string) error
	}{
		{"shrinks", strings.Repeat("x", 4000), func(path string) error { return os.Truncate(path, 10) }},
		{"grows", "x", func(path string) error { return os.WriteFile(path, []byte("xy"), 0o644) }},
		{"is written in place", "x", func(path string) error { return os.WriteFile(path, []byte("y"), 0o644) }},
		{"is replaced", "x", func(path string) error {
			if err := os.WriteFile(path+".new", []byte("x"), 0o644); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}},
		{"becomes a FIFO", "x", func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return unix.Mkfifo(path, 0o644)
		}},
		{"is large and shrinks", strings.Repeat("x", 5<<20), func(path string) error { return os.Truncate(path, 10) }},
		{"is large and grows", strings.Repeat("x", 2<<20), func(path string) error { return os.Truncate(path, 3<<20) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := newVolume(t)
			v.write("calm", "1")
			v.write("torn", row.before)
			blobs := &countingBlobs{Blobs: v.repo}
			blobs.meanwhile = func() {
				if len(blobs.contents) == 1 && blobs.contents[0] == "1" {
					return // That is the other file.
				}
				blobs.meanwhile = nil
				v.do(row.change(v.at("torn")))
			}
			request := v.request()
			request.Blobs = blobs
			result := v.adopt(v.scan(request))
			v.wantsChanges(result, "calm")
			if len(result.Waiting) != 1 || result.Waiting[0] != "torn" {
				t.Errorf("waiting: %q", result.Waiting)
			}
			v.commit()
			if row.name != "becomes a FIFO" {
				v.wants("calm", "torn")
				content, err := os.ReadFile(v.at("torn"))
				v.do(err)
				if v.content("torn") != string(content) {
					t.Error("not what is in the file")
				}
			}
		})
	}
}

func TestAFileThatNeverRests(t *testing.T) {
	for _, tracked := range []string{"", "tracked"} {
		t.Run("was "+tracked, func(t *testing.T) {
			v := newVolume(t)
			if tracked != "" {
				v.write("f", "0")
				v.commit()
			}
			v.write("f", "00")
			pass := func() *Result {
				blobs := &countingBlobs{Blobs: v.repo, meanwhile: func() {
					file, err := os.OpenFile(v.at("f"), os.O_APPEND|os.O_WRONLY, 0)
					v.do(err)
					_, err = file.WriteString("x")
					v.do(err)
					v.do(file.Close())
				}}
				request := v.request()
				request.Blobs = blobs
				return v.adopt(v.scan(request))
			}
			for n := 1; n <= 5; n++ {
				result := pass()
				v.wantsChanges(result)
				if want := n < 3; (len(result.Waiting) == 1) != want {
					t.Errorf("pass %d: waiting for %q", n, result.Waiting)
				}
				want := map[string]Reason{}
				if n == 3 {
					want["f"] = Unsettled
				}
				v.wantsSkips(result, want)
			}
			if tracked != "" && v.content("f") != "0" {
				t.Error("committed a torn state")
			}
			v.wantsChanges(v.commit(), "f")
			for path := range v.memory.Skipped() {
				t.Errorf("%q still counts as left out", path)
			}
		})
	}
}

// TestADirectoryThatMovesWhileItIsRead has it go out of the tree, with another thing in
// its place.
func TestADirectoryThatMovesWhileItIsRead(t *testing.T) {
	for _, row := range []struct {
		name     string
		replace  func(v *volume, outside string) error
		want     []string
		oneRound bool
	}{
		{"a link", func(v *volume, outside string) error { return os.Symlink(outside, v.at("d")) }, []string{"calm", "d"}, true},
		{"nothing", func(*volume, string) error { return nil }, []string{"calm"}, true},
		{"another directory", func(v *volume, _ string) error { v.write("d/other", "x"); return nil }, []string{"calm", "d/other"}, true},
		{"a file", func(v *volume, _ string) error { v.write("d", "x"); return nil }, []string{"calm", "d"}, true},
		{"a FIFO", func(v *volume, _ string) error { return unix.Mkfifo(v.at("d"), 0o644) }, []string{"calm"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := newVolume(t)
			v.write("calm", "1")
			v.write("d/e/trigger", "trigger")
			v.write("d/e/z/inner", "inner")
			v.write("d/late", "late")
			outside := filepath.Join(filepath.Dir(v.dir), "outside")
			write(t, filepath.Join(outside, "canary"), "secret")
			blobs := &countingBlobs{Blobs: v.repo}
			blobs.meanwhile = func() {
				if last := blobs.contents[len(blobs.contents)-1]; last != "trigger" {
					return
				}
				v.do(os.Rename(v.at("d"), filepath.Join(outside, "moved")))
				v.do(row.replace(v, outside))
			}
			request := v.request()
			request.Blobs = blobs
			v.adopt(v.scan(request))
			v.wants(row.want...)
			for _, content := range blobs.contents {
				if content == "secret" {
					t.Error("read outside")
				}
			}
			v.wantsChanges(v.commit())
		})
	}
}

// TestADirectoryThatNeverRests is left for the next pass, the rest goes on.
func TestADirectoryThatNeverRests(t *testing.T) {
	v := newVolume(t)
	deep := strings.Repeat("d/", window+10)
	v.write(deep+"f", "f0")
	v.write("calm", "1")
	v.commit()
	v.write(deep+"f", "f1")
	v.write("calm", "2")
	mkdirs(t, v.at("other"))
	blobs := &countingBlobs{Blobs: v.repo}
	blobs.meanwhile = func() {
		if !strings.HasPrefix(blobs.contents[len(blobs.contents)-1], "f") {
			return
		}
		// A new directory with the old one's content, so that every attempt comes here again.
		v.do(os.Rename(v.at("d"), v.at("other/d")))
		v.do(os.Mkdir(v.at("d"), 0o755))
		v.do(os.Rename(v.at("other/d/d"), v.at("d/d")))
		v.do(os.Remove(v.at("other/d")))
	}
	request := v.request()
	request.Blobs = blobs
	result := v.adopt(v.scan(request))
	v.wantsChanges(result, "calm")
	if len(result.Waiting) != 1 || result.Waiting[0][0] != 'd' {
		t.Fatalf("waiting for %q", result.Waiting)
	}
	request = v.request()
	request.Paths, request.Subtrees = nil, result.Waiting
	v.adopt(v.scan(request))
	if got := v.content(deep + "f"); got != "f1" {
		t.Errorf("committed %q", got)
	}
}

// TestAnIgnoreFileThatNeverRests keeps what it is about from being committed: nobody
// knows what it says.
func TestAnIgnoreFileThatNeverRests(t *testing.T) {
	for _, dir := range []string{".", "d"} {
		t.Run(dir, func(t *testing.T) {
			v := newVolume(t)
			v.write(join(dir, "f"), "1")
			v.write("calm/f", "1")
			v.write(join(dir, ".gitignore"), "x")
			// A lease makes each attempt to read the file fail.
			file, err := os.OpenFile(v.at(join(dir, ".gitignore")), os.O_RDWR, 0)
			v.do(err)
			defer file.Close()
			if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
				t.Skip("no leases here:", err)
			}
			result := v.commit()
			if len(result.Waiting) != 1 || result.Waiting[0] != dir {
				t.Errorf("waiting for %q", result.Waiting)
			}
			if dir == "." {
				v.wantsChanges(result)
			} else {
				v.wantsChanges(result, "calm/f")
			}
			_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
			v.do(err)
			request := v.request()
			request.Subtrees = result.Waiting
			v.adopt(v.scan(request))
			v.equalsGit()
		})
	}
}

// TestAFileUnderALease has a process hold others up, for the kernel's 45 seconds.
func TestAFileUnderALease(t *testing.T) {
	v := newVolume(t)
	v.write("f", "x")
	file, err := os.OpenFile(v.at("f"), os.O_RDWR, 0)
	v.do(err)
	defer file.Close()
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("no leases here:", err)
	}
	start := time.Now()
	result := v.commit()
	if len(result.Waiting) != 1 || time.Since(start) > 20*time.Second {
		t.Errorf("waiting for %q after %v", result.Waiting, time.Since(start))
	}
	_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	v.do(err)
	v.commit()
	v.wants("f")
}
