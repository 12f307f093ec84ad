package mount

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

func TestMain(m *testing.M) {
	if denied := os.Getenv(deniedVariable); denied != "" && os.Getenv(underFilterVariable) == "" {
		runUnderFilter(denied)
	}
	mountns.Main(m)
}

// node is a machine as the driver sees it: a store on a filesystem of its own that
// is a shared mount, and a kubelet directory.
type node struct {
	System
	store, kubelet, scratch string
	log                     *bytes.Buffer
}

// newNode makes the directories only.
func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{kubelet: mountns.SharedDir(t), log: new(bytes.Buffer)}
	// Shared as well: a scratch directory may lie below what the node shares.
	n.store, n.scratch = newFilesystem(t), filepath.Join(newFilesystem(t), "scratch")
	n.System.log = slog.New(slog.NewTextHandler(n.log, nil))
	n.views = &room{path: filepath.Join(n.scratch, viewRoomName)}
	t.Cleanup(func() { mountns.UnmountBelow(t, n.scratch) })
	return n
}

// newNative has what New chooses on a new kernel.
func newNative(t testing.TB) *node {
	t.Helper()
	n := newNode(t)
	index, err := newIndex()
	if err != nil {
		t.Skipf("this kernel has no statmount and listmount: %v", err)
	}
	if !detachedWorks() {
		t.Skip("this kernel has no open_tree, mount_setattr and move_mount")
	}
	n.binds, n.table, n.asks = detached{}, index, statxMountRoot
	return n
}

// newClassic has what New chooses on the oldest kernel.
func newClassic(t testing.TB) *node {
	t.Helper()
	n := newNode(t)
	n.binds, n.table = classic{&room{path: filepath.Join(n.scratch, roomName)}}, mountinfoTable{}
	n.asks = func(string) (bool, error) { return false, errUnknown }
	return n
}

// onBoth runs one contract on both implementations of everything.
func onBoth(t *testing.T, test func(t *testing.T, n *node)) {
	t.Run("native", func(t *testing.T) { test(t, newNative(t)) })
	t.Run("classic", func(t *testing.T) { test(t, newClassic(t)) })
}

func realTempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// newFilesystem mounts a tmpfs: whatever disk the tests run on may be read-only,
// noatime or an overlay.
func newFilesystem(t testing.TB) string {
	t.Helper()
	mountns.Require(t)
	dir := realTempDir(t)
	mustMount(t, "tmpfs", dir, "tmpfs", 0)
	t.Cleanup(func() { mountns.UnmountBelow(t, dir) })
	mustMount(t, "none", dir, "", unix.MS_SHARED)
	return dir
}

func mustMount(t testing.TB, source, point, fstype string, flags uintptr) {
	t.Helper()
	if err := unix.Mount(source, point, fstype, flags, ""); err != nil {
		t.Fatalf("mount %s on %s: %v", source, point, err)
	}
}

func (n *node) volume(t testing.TB, name string) string {
	t.Helper()
	return mkdir(t, filepath.Join(n.store, name))
}

func (n *node) target(t testing.TB, name string) string {
	t.Helper()
	return mkdir(t, filepath.Join(n.kubelet, name))
}

func mkdir(t testing.TB, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, path string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// handle opens path as a caller does: as a place, following no link.
func handle(t testing.TB, path string) *os.File {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	t.Cleanup(func() { f.Close() })
	return f
}

func (n *node) mustBind(t testing.TB, source, target string, o Options) {
	t.Helper()
	f := handle(t, source)
	defer f.Close()
	if err := n.Bind(f, target, o); err != nil {
		t.Fatalf("Bind(%q, %q): %v", source, target, err)
	}
}

func (n *node) mustUnbind(t testing.TB, target string) {
	t.Helper()
	if err := n.Unbind(target); err != nil {
		t.Fatalf("Unbind(%q): %v", target, err)
	}
	if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the target is still there after Unbind: %v", err)
	}
}

func (n *node) locate(t testing.TB, dir string) Location {
	t.Helper()
	f := handle(t, dir)
	defer f.Close()
	loc, err := n.Locate(f)
	if err != nil {
		t.Fatalf("Locate(%q): %v", dir, err)
	}
	return loc
}

// points returns where loc is shown, and with a "-" in front where as deleted.
func (n *node) points(t testing.TB, loc Location) map[string]int {
	t.Helper()
	mounts, err := n.Showing(loc)
	if err != nil {
		t.Fatalf("Showing(%+v): %v", loc, err)
	}
	points := make(map[string]int)
	for _, m := range mounts {
		if m.Location != loc {
			t.Errorf("Showing(%+v) returned a mount of %+v", loc, m.Location)
		}
		if m.Deleted {
			m.Point = "-" + m.Point
		}
		points[m.Point]++
	}
	return points
}

// mountsAt is the judge that shares no code with what is tested.
func mountsAt(t testing.TB, point string) []*mountinfo.Info {
	t.Helper()
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(point))
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

func requireMounts(t testing.TB, point string, want int) {
	t.Helper()
	if got := len(mountsAt(t, point)); got != want {
		t.Fatalf("%d mounts at %s, want %d", got, point, want)
	}
}

func mountCount(t testing.TB) int {
	t.Helper()
	infos, err := mountinfo.GetMounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(infos)
}

func hasOption(options, option string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == option {
			return true
		}
	}
	return false
}

// until waits for a condition that another process brings about.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 30 s in vain for: %s", what)
		}
	}
}

func TestNew(t *testing.T) {
	mountns.Require(t)
	if _, err := New(Config{Scratch: "relative"}); !errors.Is(err, ErrPath) {
		t.Fatalf("a relative scratch directory: %v, want ErrPath", err)
	}
	n := newNode(t)
	before := mountCount(t)
	s, err := New(Config{Scratch: n.scratch})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(n.scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("New made the scratch directory: %v", err)
	}
	if after := mountCount(t); after != before {
		t.Errorf("New left %d mounts", after-before)
	}
	if _, ok := s.binds.(detached); ok != detachedWorks() {
		t.Errorf("New chose %T", s.binds)
	}
	target := n.target(t, "t")
	if err := s.Bind(handle(t, n.volume(t, "v")), target, Options{}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(target, "f"))
	if err := s.Unbind(target); err != nil {
		t.Fatal(err)
	}
	// The default logger must take a warning without one being configured.
	if err := s.Unbind(write(t, filepath.Join(n.kubelet, "file"))); err != nil {
		t.Fatal(err)
	}
}
