package copies

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/mount"
)

func tryOpen(t *testing.T, dir string, requireMount bool) error {
	t.Helper()
	mounts, err := mount.New(mount.Config{Scratch: "/nonexistent/scratch"})
	if err != nil {
		t.Fatal(err)
	}
	store, err := Open(Config{Dir: dir, KubeletDir: "/k", RequireMount: requireMount, Mounts: mounts, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Cleanup(func() { _ = store.Close() })
	}
	return err
}

func TestOpenRefuses(t *testing.T) {
	write := func(t *testing.T, dir, name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name  string
		dir   func(t *testing.T) string
		words string
	}{
		{"a relative path", func(*testing.T) string { return "store" }, "not absolute"},
		{"a file", func(t *testing.T) string { d := t.TempDir(); write(t, d, "f", ""); return filepath.Join(d, "f") }, "not a directory"},
		{"a directory of something else", func(t *testing.T) string { d := t.TempDir(); write(t, d, "photos", ""); return d }, `"photos"`},
		{"a newer format", func(t *testing.T) string { d := t.TempDir(); write(t, d, "format", "2\n"); return d }, "it has format 2"},
		{"a damaged format", func(t *testing.T) string { d := t.TempDir(); write(t, d, "format", ""); return d }, "not a number"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := row.dir(t)
			err := tryOpen(t, dir, false)
			if !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), row.words) {
				t.Errorf("Open = %v, want ErrStore with %q", err, row.words)
			}
			if info, err := os.Stat(dir); err == nil && info.IsDir() && row.name == "a directory of something else" && info.Mode().Perm() == 0o700 {
				t.Error("the mode of somebody else's directory was changed")
			}
		})
	}
}

func TestOpenIsForOneProcess(t *testing.T) {
	dir := t.TempDir()
	if err := tryOpen(t, dir, false); err != nil {
		t.Fatal(err)
	}
	if err := tryOpen(t, dir, false); !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second Open = %v", err)
	}
}

func TestRequireMount(t *testing.T) {
	mountns.Require(t)
	f := &fixture{t: t}
	dir := t.TempDir()
	if err := tryOpen(t, dir, true); !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), "--require-mount") {
		t.Errorf("a plain directory: %v", err)
	}
	f.command("mount", "-t", "tmpfs", "disk", dir)
	t.Cleanup(func() { f.command("umount", "-l", dir) })
	if err := tryOpen(t, dir, true); err != nil {
		t.Errorf("a mount: %v", err)
	}
}

func TestClusterIsRemembered(t *testing.T) {
	f := newFixture(t)
	if uid, err := f.store.Cluster(); err != nil || uid != "" {
		t.Errorf("a new store's cluster: %q, %v", uid, err)
	}
	f.must(f.store.SetCluster("uid-1"))
	f.restart()
	if uid, err := f.store.Cluster(); err != nil || uid != "uid-1" {
		t.Errorf("Cluster = %q, %v", uid, err)
	}
}

func TestUsable(t *testing.T) {
	f := newFixture(t)
	f.must(f.store.Usable(t.Context()))
	f.must(os.Rename(f.dir, f.dir+".moved"))
	f.must(os.Mkdir(f.dir, 0o700))
	if err := f.store.Usable(t.Context()); !errors.Is(err, ErrStore) {
		t.Errorf("after the directory was replaced: %v, want ErrStore", err)
	}
}

func TestUnfinishedThingsGoAtTheStart(t *testing.T) {
	f := newFixture(t)
	f.must(os.Mkdir(f.copyPath(unfinished+"x"), 0o700))
	f.must(os.WriteFile(f.holdPath(unfinished+"x"), nil, 0o600))
	f.must(os.WriteFile(filepath.Join(f.dir, unfinished+"x"), nil, 0o600))
	f.restart()
	for _, path := range []string{f.copyPath(unfinished + "x"), f.holdPath(unfinished + "x"), filepath.Join(f.dir, unfinished+"x")} {
		if f.exists(path) {
			t.Errorf("%s is still there", path)
		}
	}
}
