package copies

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/mount"
)

func TestMain(m *testing.M) {
	if os.Getenv(killAtVariable) != "" {
		runUntilKilled()
	}
	mountns.Main(m)
}

// fixture is a node: a kubelet directory and a store.
type fixture struct {
	t       *testing.T
	kubelet string
	dir     string
	mounts  *mount.System
	store   *Store
	log     *strings.Builder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	mountns.Require(t)
	f := &fixture{t: t, kubelet: mountns.SharedDir(t), dir: filepath.Join(t.TempDir(), "store"), log: &strings.Builder{}}
	f.open()
	t.Cleanup(func() {
		_ = f.store.Close()
		mountns.UnmountBelow(t, f.dir) // the scratch mount of an old kernel's way
	})
	return f
}

// open opens the store as a new process would.
func (f *fixture) open() {
	f.t.Helper()
	mounts, err := mount.New(mount.Config{Scratch: filepath.Join(f.dir, ScratchDir)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.mounts = mounts
	f.store, err = Open(Config{Dir: f.dir, KubeletDir: f.kubelet, Mounts: mounts, Log: slog.New(slog.NewTextHandler(f.log, nil))})
	if err != nil {
		f.t.Fatal(err)
	}
}

// restart is a new process after a clean stop or a kill: the kernel drops the
// lock either way.
func (f *fixture) restart() {
	f.t.Helper()
	if err := f.store.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.open()
}

// target is pod n's, with its parent made as the kubelet does.
func (f *fixture) target(pod string) string {
	f.t.Helper()
	target := filepath.Join(f.kubelet, "pods", pod, "volumes", "kubernetes.io~csi", "pv-x", "mount")
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		f.t.Fatal(err)
	}
	return target
}

func (f *fixture) publish(volume, pod string, options ...func(*Publication)) error {
	f.t.Helper()
	p := Publication{
		Volume: volume, Target: f.target(pod),
		Hold: Hold{PodUID: pod, PodNamespace: "ns", PodName: "pod-" + pod, PV: "pv-x"},
	}
	for _, option := range options {
		option(&p)
	}
	return f.store.Publish(f.t.Context(), p)
}

func readOnly(p *Publication) { p.Options.ReadOnly = true }

func (f *fixture) unpublish(volume, pod string) error {
	f.t.Helper()
	return f.store.Unpublish(f.t.Context(), volume, f.target(pod))
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) copyPath(volume string) string { return filepath.Join(f.dir, copiesDir, volume) }

// mountsAt counts the mounts on exactly this path, stacked ones too.
func (f *fixture) mountsAt(path string) int {
	f.t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	f.must(err)
	n := 0
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); fields[4] == path {
			n++
		}
	}
	return n
}

func (f *fixture) exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// command runs a tool that a person on the node would.
func (f *fixture) command(name string, arguments ...string) {
	f.t.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		f.t.Fatalf("%s %v: %v: %s", name, arguments, err, out)
	}
}
