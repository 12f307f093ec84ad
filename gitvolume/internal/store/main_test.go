package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/logtest"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

func TestMain(m *testing.M) {
	if os.Getenv(killAtVariable) != "" {
		runUntilKilled()
	}
	mountns.Main(m)
}

const (
	aURL     = "https://example.com/o/r.git"
	otherURL = "https://example.com/o/other.git"
)

// fixture is a store of a test's own.
type fixture struct {
	t     *testing.T
	dir   string
	log   *logtest.Log
	store *Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: filepath.Join(t.TempDir(), "store"), log: &logtest.Log{}}
	f.open()
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

func settings(dir string) Settings { return Settings{Dir: dir, TrashKeep: time.Hour} }

// open opens the store as a new process would.
func (f *fixture) open() {
	f.t.Helper()
	s := settings(f.dir)
	s.Log = f.log.Logger()
	var err error
	f.store, err = Open(s)
	f.must(err)
}

// restart is a new process after a clean stop or a kill: the kernel drops the lock either
// way.
func (f *fixture) restart() {
	f.t.Helper()
	f.must(f.store.Close())
	f.open()
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) wants(err, want error) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Errorf("error %v, want %v", err, want)
	}
}

func (f *fixture) exists(names ...string) bool {
	_, err := os.Lstat(filepath.Join(append([]string{f.dir}, names...)...))
	return err == nil
}

// glob is how many paths of the store the pattern has.
func (f *fixture) glob(pattern string) int {
	f.t.Helper()
	found, err := filepath.Glob(filepath.Join(f.dir, pattern))
	f.must(err)
	return len(found)
}

func (f *fixture) write(text string, names ...string) {
	f.t.Helper()
	f.must(os.WriteFile(filepath.Join(append([]string{f.dir}, names...)...), []byte(text), 0o600))
}

// volume saves a writeable volume with a tree, which holds a file.
func (f *fixture) volume(handle string) Record {
	f.t.Helper()
	r := aRecord(handle)
	f.must(f.store.Save(r))
	var err error
	r.Position.Tree, err = f.store.MakeTree(handle, 0o777)
	f.must(err)
	f.must(f.store.Save(r))
	f.write("content", volumesDir, handle, treeName, "file")
	return r
}

func aRecord(handle string) Record {
	return Record{Handle: handle, Kind: Writeable, URL: mustURL(aURL), Ref: "main"}
}

func mustURL(text string) attributes.URL {
	url, err := attributes.ParseURL(text)
	if err != nil {
		panic(err)
	}
	return url
}

func (f *fixture) repository(url string) Repository { return f.store.Repository(mustURL(url), 0) }

// commit makes an empty commit in the repository and has the refs name it.
func (f *fixture) commit(r Repository, refs ...string) object.ID {
	f.t.Helper()
	release, err := r.Use(f.t.Context())
	f.must(err)
	defer release()
	repository, err := history.Open(r.Dir())
	f.must(err)
	defer repository.Close()
	who := history.Signature{Name: "n", Email: "e", When: time.Unix(1e9, 0)}
	id, err := repository.Commit(history.Draft{Author: who, Committer: who, Message: "m\n"})
	f.must(err)
	for _, ref := range refs {
		f.must(repository.SetRef(ref, id, object.ID{}))
	}
	f.must(repository.Flush())
	return id
}

// refs are the names of the repository's refs.
func (f *fixture) refs(r Repository) map[string]bool {
	f.t.Helper()
	found, err := f.store.ownRefs(r.name)
	f.must(err)
	names := map[string]bool{}
	for _, ref := range found {
		names[ref.Name] = true
	}
	return names
}
