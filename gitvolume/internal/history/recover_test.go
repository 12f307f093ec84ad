package history

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// TestRecover leaves what killed processes and power cuts leave (C43), and looks at
// what works then.
func TestRecover(t *testing.T) {
	content := []byte("content\n")
	for name, row := range map[string]struct {
		leave func(t *testing.T, r *Repository, peer *peer) string // What is left, in the repository.
		field string
		lost  bool // The content has to be written again.
	}{
		"a lock of a ref":      {leaveFile("refs/heads/main.lock", nil), "Locks", false},
		"a lock of all refs":   {leaveFile("packed-refs.lock", nil), "Locks", false},
		"a lock of HEAD":       {leaveFile("HEAD.lock", nil), "Locks", false},
		"a lock of the config": {leaveFile("config.lock", nil), "Locks", false},
		"a lock of shallow":    {leaveFile("shallow.lock", nil), "Locks", false},
		"an empty ref":         {leaveFile("refs/heads/main", nil), "Refs", false},
		"a ref of zeros":       {leaveFile("refs/heads/main", make([]byte, 41)), "Refs", false},
		"an empty index": {func(t *testing.T, r *Repository, _ *peer) string {
			index := must(filepath.Glob(filepath.Join(r.dir, "objects/pack/*.idx")))[0]
			overwrite(t, index, nil)
			return filepath.Base(index)
		}, "Indexes", false},
		"an index that is cut off": {func(t *testing.T, r *Repository, _ *peer) string {
			index := must(filepath.Glob(filepath.Join(r.dir, "objects/pack/*.idx")))[0]
			overwrite(t, index, must(os.ReadFile(index))[:1100])
			return filepath.Base(index)
		}, "Indexes", false},
		"a loose object that is cut off": {func(t *testing.T, r *Repository, peer *peer) string {
			return truncateLoose(t, r, peer, func(b []byte) []byte { return b[:len(b)/2] })
		}, "Objects", true},
		"an empty loose object": {func(t *testing.T, r *Repository, peer *peer) string {
			return truncateLoose(t, r, peer, func([]byte) []byte { return nil })
		}, "Objects", true},
	} {
		t.Run(name, func(t *testing.T) {
			r, peer := newRepository(t)
			blob := must(r.Blob(content))
			tip := commit(t, r, must(r.Edit(object.ID{}, []Change{{"f", object.Regular, blob}})))
			if err := r.SetRef("refs/heads/kept", tip, object.ID{}); err != nil {
				t.Fatal(err)
			}
			if done, err := Recover(r.dir); err != nil || !reflect.ValueOf(done).IsZero() {
				t.Fatalf("of a sound repository: %+v, %v", done, err)
			}
			left := row.leave(t, r, peer)
			r.Close()
			done, err := Recover(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := reflect.ValueOf(done).FieldByName(row.field).Interface().([]string); !slices.Equal(got, []string{left}) {
				t.Errorf("recovered %+v, want %s of %s", done, left, row.field)
			}
			again := openRepository(t, r.dir)
			if got, err := again.Content(blob); (err != nil) != row.lost {
				t.Errorf("the content is %q, %v", got, err)
			}
			if got := must(again.Blob(content)); got != blob {
				t.Errorf("the blob is %s, then %s", blob, got)
			}
			if err := again.SetRef("refs/heads/main", tip, object.ID{}); err != nil {
				t.Error(err)
			}
			if _, err := peer.try("", "update-ref", "refs/heads/main", tip.String()); err != nil {
				t.Error(err)
			}
			peer.fsck()
		})
	}
}

func leaveFile(name string, content []byte) func(*testing.T, *Repository, *peer) string {
	return func(t *testing.T, r *Repository, _ *peer) string {
		overwrite(t, filepath.Join(r.dir, name), content)
		return name
	}
}

// overwrite puts something in a file's place, or beside the others.
func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// truncateLoose makes all objects loose and cuts the blob off.
func truncateLoose(t *testing.T, r *Repository, peer *peer, cut func([]byte) []byte) string {
	t.Helper()
	pack := must(filepath.Glob(filepath.Join(r.dir, "objects/pack/*.pack")))[0]
	bytes := must(os.ReadFile(pack))
	for _, file := range must(filepath.Glob(filepath.Join(r.dir, "objects/pack/*"))) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	peer.feed(string(bytes), "unpack-objects", "-q")
	path := r.loosePath(peer.id("content\n", "hash-object", "--stdin"))
	overwrite(t, path, cut(must(os.ReadFile(path))))
	return must(filepath.Rel(r.dir, path))
}

// TestRecoverWithoutDescriptors recovers a repository in a process that can open no file: that
// says nothing about an object, which may be all there is of a commit.
func TestRecoverWithoutDescriptors(t *testing.T) {
	if err := exec.Command("strace", "-o", "/dev/null", "true").Run(); err != nil {
		t.Skipf("strace is needed, and a process that may be traced: %v", err)
	}
	for _, errno := range []string{"EMFILE", "ENFILE", "ENOMEM"} {
		t.Run(errno, func(t *testing.T) {
			r, peer := newRepository(t)
			must(r.Blob([]byte("content\n")))
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(r.dir, truncateLoose(t, r, peer, func(b []byte) []byte { return b }))
			child := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-P", path, "-e", "inject=openat:error="+errno, os.Args[0])
			child.Env = append(os.Environ(), childRecoverEnv+"="+r.dir)
			said, err := child.CombinedOutput()
			if err != nil || !strings.Contains(string(said), "recover the repository: read an object") {
				t.Errorf("%v: %s", err, said)
			}
			if !exists(path) {
				t.Error("the object was removed")
			}
		})
	}
}

// TestCreateAgain repairs the files of the repository itself, and keeps what is in it.
func TestCreateAgain(t *testing.T) {
	for _, name := range []string{"HEAD", "config"} {
		for what, content := range map[string]string{"empty": "", "zeros": "\x00\x00\x00", "other": "ref: refs/heads/../x\n", "a program": "[core]\nfsmonitor = x\n"} {
			r, peer := newRepository(t)
			tip := commit(t, r, object.ID{})
			if err := r.SetRef("refs/heads/main", tip, object.ID{}); err != nil {
				t.Fatal(err)
			}
			overwrite(t, filepath.Join(r.dir, name), []byte(content))
			if err := Create(r.dir); err != nil {
				t.Fatalf("%s, %s: %v", name, what, err)
			}
			if got, err := openRepository(t, r.dir).Ref("HEAD"); err != nil || got != tip {
				t.Errorf("%s, %s: HEAD is %s, %v", name, what, got, err)
			}
			peer.fsck()
		}
	}
}

func TestCreateSweeps(t *testing.T) {
	r, _ := newRepository(t)
	dirs := []string{"", "objects", "objects/pack"}
	for _, dir := range dirs {
		overwrite(t, filepath.Join(r.dir, dir, "tmp_history_new"), nil)
		for _, name := range []string{"tmp_history_old", "tmp_object_git2_old", "pack_git2_old", "other"} {
			path := filepath.Join(r.dir, dir, name)
			overwrite(t, path, nil)
			age(t, path)
		}
	}
	if err := Create(r.dir); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		left := must(filepath.Glob(filepath.Join(r.dir, dir, "*o*_*")))
		if !slices.Equal(left, []string{filepath.Join(r.dir, dir, "tmp_history_new")}) || !exists(filepath.Join(r.dir, dir, "other")) {
			t.Errorf("in %q are left %q", dir, left)
		}
	}
}

// age makes a file look two days old.
func age(t *testing.T, path string) {
	t.Helper()
	when := time.Now().Add(-2 * leftAfter)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

// TestRecoverOddPath has a repository in a directory whose name means something in a
// pattern.
func TestRecoverOddPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "re[p]*o?")
	if err := Create(dir); err != nil {
		t.Fatal(err)
	}
	r := openRepository(t, dir)
	if must(r.Blob([]byte("x"))); r.Flush() != nil || must(r.Packs()) != 1 {
		t.Errorf("there are %d packs", must(r.Packs()))
	}
	lock := filepath.Join(dir, "packed-refs.lock")
	index := must(r.packIndexes())[0]
	if err := errors.Join(os.WriteFile(lock, nil, 0o600), os.Chmod(index, 0o600), os.Truncate(index, 0)); err != nil {
		t.Fatal(err)
	}
	done, err := Recover(dir)
	if err != nil || len(done.Locks) != 1 || len(done.Indexes) != 1 || exists(lock) {
		t.Errorf("recovered %+v, %v", done, err)
	}
}
