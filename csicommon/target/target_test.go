package target_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/target"
)

// mounts is a mount table. What is mounted is called by its path.
type mounts struct {
	mounted   map[string]mount.Mount
	store     mount.Location
	notShared map[string]bool
	failing   error
	steps     []string
}

func (m *mounts) Bind(_ *os.File, path string, _ mount.Options) error {
	m.steps = append(m.steps, "bind "+path)
	return m.failing
}

func (m *mounts) Unbind(path string) error {
	m.steps = append(m.steps, "unbind "+path)
	return m.failing
}

func (m *mounts) At(path string) (mount.Mount, bool, error) {
	found, is := m.mounted[path]
	return found, is, m.failing
}

func (m *mounts) Locate(*os.File) (mount.Location, error) { return m.store, nil }

func (m *mounts) RequireShared(dir string) error {
	if m.notShared[dir] {
		return mount.ErrNotShared
	}
	return nil
}

func newTargets(t *testing.T, m *mounts) (*target.Targets, string) {
	t.Helper()
	kubelet, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return target.New(target.Config{KubeletDir: kubelet, StoreDir: "/store", Mounts: m, Log: slog.New(slog.DiscardHandler)}), kubelet
}

func TestCanonical(t *testing.T) {
	for _, path := range []string{"relative/mount", "/" + strings.Repeat("a/", 2100)} {
		if _, err := target.Canonical(path); !errors.Is(err, target.ErrTarget) {
			t.Errorf("%.20q: %v, want ErrTarget", path, err)
		}
	}
	if _, err := target.Canonical("/nonexistent/a/mount"); !target.LeadsNowhere(err) {
		t.Errorf("a path that does not exist: %v", err)
	}
}

func TestFormer(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		at, want  string
		isNowhere bool
	}{
		{dir + "/./mount/", dir + "/mount", false},
		{"/nonexistent//a/./mount", "/nonexistent/a/mount", true},
		{"/proc/self/status/mount", "/proc/self/status/mount", true},
	} {
		got, isNowhere, err := target.Former(row.at)
		if got != row.want || isNowhere != row.isNowhere || err != nil {
			t.Errorf("%s: %q, %t, %v, want %q, %t", row.at, got, isNowhere, err, row.want, row.isNowhere)
		}
	}
	if _, _, err := target.Former("relative/mount"); !errors.Is(err, target.ErrTarget) {
		t.Errorf("a relative path: %v", err)
	}
}

func TestVolumeName(t *testing.T) {
	for path, want := range map[string]string{
		"/k/pods/u/volumes/kubernetes.io~csi/pv-1/mount":   "pv-1",
		"/k/pods/u/volumes/kubernetes.io~csi//pv-1/mount/": "pv-1",
		"/k/pods/u/volumes/kubernetes.io~nfs/pv-1/mount":   "",
		"/k/pods/u/volumes/kubernetes.io~csi/PV/mount":     "",
		"/mount": "",
	} {
		if got := target.VolumeName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestIsBelow(t *testing.T) {
	for path, want := range map[string]bool{"/store": true, "/store/a": true, "/stores": false, "/": false} {
		if target.IsBelow(path, "/store") != want {
			t.Errorf("%s: not %t", path, want)
		}
	}
	if !target.IsBelow("/a", "/") {
		t.Error("/a is not below /")
	}
}

func TestCheck(t *testing.T) {
	m := &mounts{mounted: map[string]mount.Mount{"/k/taken": {}}, notShared: map[string]bool{"/private": true}}
	targets, _ := newTargets(t, m)
	for path, want := range map[string]error{
		"/store/x": target.ErrTarget, "/k/taken": target.ErrOccupied, "/private/x": mount.ErrNotShared, "/k/free": nil,
	} {
		if err := targets.Check(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

func TestTakeOff(t *testing.T) {
	m := &mounts{
		mounted: map[string]mount.Mount{
			"/of-store":  {Location: mount.Location{Major: 8, Path: "/disk/store/x"}},
			"/other":     {Location: mount.Location{Major: 8, Path: "/disk/stores"}},
			"/elsewhere": {Location: mount.Location{Major: 9, Path: "/disk/store/x"}},
		},
		store: mount.Location{Major: 8, Path: "/disk/store"},
	}
	targets, kubelet := newTargets(t, m)
	disk, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(disk, filepath.Join(kubelet, "pods")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/of-store": true, "/other": false, "/elsewhere": false, "/nothing": false,
		filepath.Join(kubelet, "pods/u/volumes/kubernetes.io~csi/pv/mount"): true,
		filepath.Join(disk, "u/volumes/kubernetes.io~csi/pv/mount"):         true,
		filepath.Join(kubelet, "pods/u/volumes/kubernetes.io~nfs/pv/mount"): false,
	} {
		m.steps = nil
		taken, err := targets.TakeOff(path, false)
		if taken != want || err != nil || len(m.steps) > 0 != want {
			t.Errorf("%s: taken %t, %v, %q", path, taken, err, m.steps)
		}
	}
	if taken, err := targets.TakeOff("/nothing", true); !taken || err != nil {
		t.Errorf("a known one: %t, %v", taken, err)
	}
}

// After a bind that failed the target is as it was.
func TestShowThatFails(t *testing.T) {
	m := &mounts{failing: fs.ErrPermission}
	targets, dir := newTargets(t, m)
	made, there := filepath.Join(dir, "made"), filepath.Join(dir, "there")
	if err := os.Mkdir(there, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{made, there} {
		if err := targets.Show(nil, path, mount.Options{}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Lstat(made); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target that was made is left: %v", err)
	}
	if _, err := os.Lstat(there); err != nil {
		t.Errorf("the target that was there is gone: %v", err)
	}
}
