package worktree

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
)

// tortureFor is how long a hostile application is let loose; the variable has a Go
// duration for a longer run.
func tortureFor(t *testing.T) time.Duration {
	text := os.Getenv("LIKEN_TEST_TORTURE")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// hostile does to a tree what a program in the pod can do, and goes out of the tree for
// nothing but links and directories that it moves there and back.
type hostile struct {
	root, outside int // Handles.
	canary        string
	random        *rand.Rand
}

// name is one of few, so that the same are met again and again, or of any bytes.
func (h *hostile) name() string {
	if h.random.IntN(8) == 0 {
		name := make([]byte, 1+h.random.IntN(12))
		for i := range name {
			for name[i] == 0 || name[i] == '/' || name[i] == '.' {
				name[i] = byte(h.random.IntN(256))
			}
		}
		return string(name)
	}
	names := []string{"a", "b", "c", "d", "e", ".git", ".GIT", "git~1", ".gitignore", ".gitmodules", "-rf", "\xff"}
	return names[h.random.IntN(len(names))]
}

// dir is a handle of some directory of the tree; never through a link.
func (h *hostile) dir() int {
	at, err := unix.Openat(h.root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for n := h.random.IntN(6); err == nil && n > 0; n-- {
		next, failed := unix.Openat(at, h.name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if failed != nil {
			break
		}
		_ = unix.Close(at)
		at = next
	}
	return at
}

func (h *hostile) act() {
	dir, other := h.dir(), h.dir()
	defer unix.Close(dir)
	defer unix.Close(other)
	name, second := h.name(), h.name()
	switch h.random.IntN(16) {
	case 0, 1, 2, 3:
		_ = unix.Mkdirat(dir, name, 0o755)
	case 4, 5:
		h.write(dir, name)
	case 6:
		targets := []string{h.canary, h.canary + "/file", "..", ".", "../../outside/canary", "/", "/dev/zero"}
		_ = unix.Symlinkat(targets[h.random.IntN(len(targets))], dir, name)
	case 7:
		_ = unix.Mknodat(dir, name, unix.S_IFIFO|0o644, 0)
	case 8:
		_ = unix.Mknodat(dir, name, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))) // /dev/zero, without an end
	case 9, 10:
		_ = unix.Renameat2(dir, name, other, second, unix.RENAME_EXCHANGE)
	case 11, 12:
		_ = unix.Renameat(dir, name, other, second)
	case 13:
		// Out of the tree, and something back from there.
		_ = unix.Renameat(dir, name, h.outside, fmt.Sprint("moved-", h.random.IntN(4)))
		_ = unix.Renameat(h.outside, fmt.Sprint("moved-", h.random.IntN(4)), other, second)
	case 14:
		_ = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	case 15:
		_ = unix.Unlinkat(dir, name, 0)
	}
}

// write writes a file, which is no link, in one of several ways.
func (h *hostile) write(dir int, name string) {
	flags := unix.O_CREAT | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	if h.random.IntN(2) == 0 {
		flags |= unix.O_TRUNC
	}
	fd, err := unix.Openat(dir, name, flags, 0o644)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	switch h.random.IntN(20) {
	case 0:
		_ = unix.Ftruncate(fd, 2<<20)
	case 1:
		_ = unix.Ftruncate(fd, 1<<40)
	}
	content := []string{"*\n", "a\n!b\n", "some content", strings.Repeat("x", 5000)}
	_, _ = unix.Write(fd, []byte(content[h.random.IntN(len(content))]))
	_ = unix.Fchmod(fd, uint32(h.random.IntN(0o1000)))
}

// opens tells of each time anything of a directory is opened.
type opens struct {
	t  *testing.T
	fd int
}

func watchOpens(t *testing.T, paths ...string) *opens {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip("no inotify here:", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for _, path := range paths {
		if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_ACCESS|unix.IN_MODIFY); err != nil {
			t.Skip("no watch here:", err)
		}
	}
	return &opens{t, fd}
}

func (o *opens) any() bool {
	n, err := unix.Read(o.fd, make([]byte, 64<<10))
	return err == nil && n > 0
}

// TestAHostileApplication lets one loose on a tree that is scanned all the while.
func TestAHostileApplication(t *testing.T) {
	v := newVolume(t)
	v.limit = 1 << 20
	outside := filepath.Join(filepath.Dir(v.dir), "outside")
	canary := filepath.Join(outside, "canary")
	write(t, filepath.Join(canary, "file"), "secret")
	write(t, filepath.Join(canary, ".gitignore"), "secret*")
	watched := watchOpens(t, canary, canary+"/file", canary+"/.gitignore")
	v.write("calm/f", "calm")

	ctx, cancel := context.WithTimeout(t.Context(), tortureFor(t))
	defer cancel()
	var hostiles sync.WaitGroup
	for range 2 {
		h := &hostile{canary: canary, random: rand.New(rand.NewPCG(rand.Uint64(), 1))}
		var err error
		h.root, err = unix.Open(v.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		v.do(err)
		h.outside, err = unix.Open(outside, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		v.do(err)
		hostiles.Go(func() {
			defer unix.Close(h.root)
			defer unix.Close(h.outside)
			for ctx.Err() == nil {
				h.act()
			}
		})
	}
	blobs := &countingBlobs{Blobs: v.repo}
	guesses := &hostile{random: rand.New(rand.NewPCG(1, 2))}
	scans, found := 0, 0
	for ctx.Err() == nil {
		request := v.request()
		request.Blobs = blobs
		if scans%3 != 0 {
			request.Subtrees = []string{guesses.name()}
			request.Paths = []string{guesses.name() + "/" + guesses.name(), guesses.name(), ".gitignore"}
		}
		start := time.Now()
		found += len(v.adopt(v.scan(request)).Changes)
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("a scan took %v", took)
		}
		scans++
		for _, content := range blobs.contents {
			if strings.Contains(content, "secret") {
				t.Fatal("read outside of the tree")
			}
		}
		blobs.contents = blobs.contents[:0]
	}
	hostiles.Wait()
	if watched.any() {
		t.Error("something outside of the tree was opened")
	}
	if open := handlesIn(t, filepath.Dir(v.dir), v.store); len(open) != 1 { // The Tree's own.
		t.Errorf("open: %q", open)
	}
	t.Logf("%d scans found %d changes", scans, found)

	// Once it is quiet, everything is as if it had been looked at for the first time;
	// what was committed below a mount or the like is not in question here.
	result := v.commit()
	if len(result.Waiting) != 0 {
		t.Errorf("waiting for %q in a quiet tree", result.Waiting)
	}
	if v.content("calm/f") != "calm" {
		t.Error("the calm file is lost")
	}
	v.wantsChanges(v.commit())
	v.agreesWithALook(t)
}

// handlesIn are the open files below a directory, but for those below another.
func handlesIn(t *testing.T, dir, but string) []string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, fd := range fds {
		path, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err == nil && strings.HasPrefix(path, dir+"/") && !strings.HasPrefix(path, but+"/") {
			open = append(open, path)
		}
	}
	return open
}

// agreesWithALook compares what is committed of each file with the disk.
func (v *volume) agreesWithALook(t *testing.T) {
	for path, e := range v.memory.All() {
		if e.Mode == 0 || e.Mode == object.Directory || e.Left != 0 {
			continue
		}
		var content []byte
		var err error
		if e.Mode == object.Symlink {
			var target string
			target, err = os.Readlink(v.at(path))
			content = []byte(target)
		} else {
			content, err = os.ReadFile(v.at(path))
		}
		if id, _ := (Hasher{}).Blob(content); err != nil || id != e.Blob {
			t.Errorf("%q: committed %s, on disk %s, error %v", path, e.Blob, id, err)
		}
	}
}

// TestNothingButRegularFilesIsOpened has a file be swapped between the look and the open.
func TestNothingButRegularFilesIsOpened(t *testing.T) {
	asRoot(t)
	for name, mode := range map[string]uint32{"FIFO": unix.S_IFIFO, "device": unix.S_IFCHR, "socket": unix.S_IFSOCK} {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.write("f", "x")
			c := openCursor(t, v.tree)
			seen, err := c.Here().Stat("f")
			v.do(err)
			v.do(os.Remove(v.at("f")))
			v.do(unix.Mknod(v.at("f"), mode|0o644, int(unix.Mkdev(1, 5))))
			watched := watchOpens(t, v.at("f"))
			if fd, err := openRegular(c.Here(), "f", seen); err == nil {
				unix.Close(fd)
				t.Error("opened")
			}
			if watched.any() {
				t.Error("opened for a moment")
			}
		})
	}
}
