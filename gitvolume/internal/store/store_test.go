package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

func tryOpen(dir string) error {
	s := settings(dir)
	s.Log = slog.New(slog.DiscardHandler)
	opened, err := Open(s)
	if err == nil {
		err = opened.Close()
	}
	return err
}

func TestOpenRefuses(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(dir, victim string) error
		words string
	}{
		{"a directory of somebody else", func(dir, _ string) error { return os.Mkdir(filepath.Join(dir, "photos"), 0o755) }, `"photos"`},
		{"volumes of somebody else", func(dir, _ string) error { return os.MkdirAll(filepath.Join(dir, "volumes", "of-mine"), 0o755) }, `"of-mine"`},
		{"a repository", func(dir, _ string) error { return os.Mkdir(filepath.Join(dir, ".git"), 0o755) }, `".git"`},
		{"volumes is a link", func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, "volumes")) }, "link"},
		{"repos is a file, format there", func(dir, _ string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "format"), []byte("1\n"), 0o600), os.WriteFile(filepath.Join(dir, "repos"), nil, 0o600))
		}, "link or a file"},
		{"the trash for now is a link, format there", func(dir, victim string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "format"), []byte("1\n"), 0o600), os.Mkdir(filepath.Join(dir, "trash"), 0o700),
				os.Symlink(victim, filepath.Join(dir, "trash", "now")))
		}, "link"},
		{"format is a FIFO", func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, "format"), 0o600) }, "not a regular file"},
		{"format of a later release", func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "format"), []byte("2\n"), 0o600) }, "format 2"},
		{"format that is no number", func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "format"), []byte("ext4"), 0o600) }, `"ext4"`},
		{"lock is a link", func(dir, victim string) error {
			return os.Symlink(filepath.Join(victim, "kept"), filepath.Join(dir, "lock"))
		}, "not a regular file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, victim := t.TempDir(), t.TempDir()
			kept := filepath.Join(victim, "kept")
			if err := errors.Join(os.WriteFile(kept, []byte("x"), 0o600), row.spoil(dir, victim)); err != nil {
				t.Fatal(err)
			}
			if err := tryOpen(dir); !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), row.words) {
				t.Errorf("Open = %v, want ErrStore with %s", err, row.words)
			}
			if data, err := os.ReadFile(kept); err != nil || string(data) != "x" {
				t.Errorf("what the link led to: %q, %v", data, err)
			}
		})
	}
	if err := tryOpen("store"); !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), "not absolute") {
		t.Errorf("a relative path: %v", err)
	}
}

func TestOpenRefusesWhatIsAnotherUsers(t *testing.T) {
	for _, below := range []string{"", "repos", "repos/" + repositoryName(mustURL(aURL), 0)} {
		dir := t.TempDir()
		if err := tryOpen(dir); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, below)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 4321, -1); err != nil {
			t.Skipf("only root may give a directory away: %v", err)
		}
		err := tryOpen(dir)
		if !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), "belongs to user 4321") || !strings.Contains(err.Error(), "chown -R") {
			t.Errorf("%q: %v", below, err)
		}
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	f := newFixture(t)
	err := tryOpen(f.dir)
	if !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second Open = %v", err)
	}
	f.must(f.store.Close())
	f.must(tryOpen(f.dir))
	f.open()
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
	f.must(os.Remove(filepath.Join(f.dir, "cluster")))
	_, err := f.store.Cluster()
	f.wants(err, ErrClusterLost)
}

func TestTheStoreIsClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), tryOpen(dir)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestUsableWhileItIsWhereItWasOpened(t *testing.T) {
	f := newFixture(t)
	f.must(errors.Join(f.store.Usable(t.Context()), f.store.Writable(t.Context())))
	f.must(os.Rename(filepath.Join(f.dir, "volumes"), filepath.Join(f.dir, "volumes.old")))
	f.must(os.Mkdir(filepath.Join(f.dir, "volumes"), 0o700))
	f.wants(f.store.Usable(t.Context()), ErrStore)
	f.wants(f.store.Save(aRecord("v")), ErrStore)
}

func TestWhatIsUnfinishedGoesAtTheStart(t *testing.T) {
	f := newFixture(t)
	f.volume("v")
	f.commit(f.repository(aURL))
	repository := f.repository(aURL).name
	f.must(os.MkdirAll(filepath.Join(f.dir, volumesDir, "half"), 0o700))
	f.must(os.MkdirAll(filepath.Join(f.dir, asideDir, "empty"), 0o700))
	f.must(os.MkdirAll(filepath.Join(f.dir, asideDir, "noted"), 0o700))
	f.must(os.MkdirAll(filepath.Join(f.dir, asideDir, "full", "v"), 0o700))
	left := [][]string{
		{"cluster.next"}, {volumesDir, "v", "record.json.next"}, {volumesDir, "v", "memory.next"}, {volumesDir, "half", "memory"},
		{reposDir, repository, "about.json.next"}, {asideDir, "noted", aboutFile},
	}
	for _, names := range left {
		f.write("{", names...)
	}
	f.write("{}", asideDir, "full", aboutFile)
	f.restart()
	for _, names := range append(left, []string{volumesDir, "half"}, []string{asideDir, "empty"}, []string{asideDir, "noted"}) {
		if f.exists(names...) {
			t.Errorf("%v is still there", names)
		}
	}
	if !f.exists(asideDir, "full", aboutFile) || !f.exists(volumesDir, "v", treeName, "file") {
		t.Error("something that counts is gone")
	}
}

// A disk with errors goes read-only under the running pods: the store must still be opened.
func TestAReadOnlyStoreOpens(t *testing.T) {
	mountns.Require(t)
	f := newFixture(t)
	f.must(f.store.Close())
	f.must(unix.Mount("none", f.dir, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = f.store.Close(); f.must(unix.Unmount(f.dir, unix.MNT_DETACH)) })
	f.open()
	f.volume("v")
	f.write("1", volumesDir, "v", markFile)
	f.must(os.Mkdir(filepath.Join(f.dir, volumesDir, "half"), 0o700))
	f.must(f.store.Close())
	f.must(unix.Mount("none", f.dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	f.open()
	f.must(f.store.Usable(t.Context()))
	f.wants(f.store.Writable(t.Context()), ErrStore)
	if records, _, err := f.store.All(); err != nil || len(records) != 1 {
		t.Errorf("All = %v, %v", records, err)
	}
	f.wants(f.store.Save(aRecord("w")), unix.EROFS)
	f.store.Mark("v")()
	if n := f.store.Suspects()["v"]; n != 1 {
		t.Errorf("suspected %d times", n)
	}
	f.must(unix.Mount("none", f.dir, "", unix.MS_REMOUNT, ""))
}
