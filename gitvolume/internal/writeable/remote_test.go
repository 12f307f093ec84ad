package writeable_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
)

// nodeRemote does what package remote does, and what a test wants to go wrong. It starts no
// git, which would be most of what the tests of this package cost: objects are linked from
// one repository to the other, and refs are files.
type nodeRemote struct {
	t        *testing.T
	upstream *gittest.Bare
	store    string
	// moves is held by whoever moves a ref of the upstream repository.
	moves *sync.Mutex
	slots *remote.Slots

	mu sync.Mutex
	// down is the error of everything, before is called before each operation, and decline
	// refuses refs.
	down    error
	before  func(operation string)
	decline map[string]string
	// keeps has the remote decline that branches are deleted.
	keeps bool
	lost  bool // The answer to the next push is.
	// restless has each push be told that the ref moved, of which a fetch sees nothing.
	restless bool
	// hangs has a push last for as long as it may.
	hangs bool
	// late is how many turns are over before they are used.
	late    int
	pushes  int
	fetches int
}

func (r *nodeRemote) set(change func(r *nodeRemote)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

func (r *nodeRemote) begin(operation string) error {
	r.mu.Lock()
	before := r.before
	r.mu.Unlock()
	if before != nil {
		before(operation)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

// Turn implements writeable.Remote.
func (r *nodeRemote) Turn(ctx context.Context) (context.Context, func(error), error) {
	within, release, err := r.slots.Take(ctx, attributes.URL{Host: "remote"}, remote.Pushing)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.late > 0 {
		r.late--
		over, callOff := context.WithCancelCause(within)
		callOff(remote.ErrTurnOver)
		return over, release, nil
	}
	return within, release, err
}

// Fetch implements writeable.Remote.
func (r *nodeRemote) Fetch(_ context.Context, refs map[string]string, _ remote.Urgency) (map[string]remote.Fetched, error) {
	if err := r.begin("fetch"); err != nil {
		return nil, err
	}
	r.set(func(r *nodeRemote) { r.fetches++ })
	fetched := map[string]remote.Fetched{}
	there := refsOf(r.t, r.upstream.Dir)
	linkObjects(r.t, r.upstream.Dir, r.store)
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		tip, found := there[name]
		if !found {
			fetched[name] = remote.Fetched{Gone: true}
			continue
		}
		writeRef(r.t, r.store, refs[name], tip)
		f := remote.Fetched{Tip: r.parse(tip)}
		if commit, err := r.commitOf(f.Tip); err == nil {
			f.Commit = commit
		}
		fetched[name] = f
	}
	return fetched, nil
}

// commitOf asks a handle of the store's repository that is nobody else's.
func (r *nodeRemote) commitOf(id object.ID) (commit object.ID, err error) {
	repository, err := history.Open(r.store)
	if err != nil {
		return commit, err
	}
	defer repository.Close()
	return repository.CommitOf(id)
}

// FetchAnew implements writeable.Remote.
func (r *nodeRemote) FetchAnew(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error) {
	return r.Fetch(ctx, refs, urgency)
}

// List implements writeable.Remote.
func (r *nodeRemote) List(ctx context.Context, names ...string) (*remote.Refs, error) {
	if err := r.begin("list"); err != nil {
		return nil, err
	}
	url, err := attributes.ParseURL(r.upstream.Dir)
	if err != nil {
		return nil, err
	}
	return command.List(ctx, remote.Remote{URL: url}, names...)
}

// Push implements writeable.Remote.
func (r *nodeRemote) Push(ctx context.Context, branch remote.Update, metadata *remote.Update) (remote.Pushed, error) {
	if err := r.begin("push"); err != nil {
		return remote.Pushed{}, err
	}
	if ctx.Err() != nil {
		return remote.Pushed{}, &remote.Failure{Kind: context.Cause(ctx)}
	}
	var restless, hangs bool
	r.set(func(r *nodeRemote) {
		r.pushes++
		restless, hangs = r.restless, r.hangs
	})
	if hangs {
		<-ctx.Done()
		failed := &remote.Failure{Kind: remote.ErrTimeout, Cause: context.Cause(ctx)}
		return remote.Pushed{}, &remote.Unknown{Push: failed, Look: failed}
	}
	if restless {
		return remote.Pushed{}, &remote.Moved{Ref: branch.Ref}
	}
	if err := r.move(branch); err != nil {
		return remote.Pushed{}, err
	}
	var pushed remote.Pushed
	if metadata != nil {
		pushed.Metadata = r.move(*metadata)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost {
		r.lost = false
		failed := &remote.Failure{Kind: remote.ErrUnreachable}
		return remote.Pushed{}, &remote.Unknown{Push: failed, Look: failed}
	}
	return pushed, nil
}

func (r *nodeRemote) move(update remote.Update) error {
	r.mu.Lock()
	words := r.decline[update.Ref]
	r.mu.Unlock()
	r.moves.Lock()
	defer r.moves.Unlock()
	var now object.ID
	if tip, found := refsOf(r.t, r.upstream.Dir)[update.Ref]; found {
		now = r.parse(tip)
	}
	switch {
	case now == update.Tip:
		return nil
	case now != update.Expected:
		return &remote.Moved{Ref: update.Ref, Tip: now}
	case words != "":
		return &remote.Declined{Ref: update.Ref, Words: words}
	}
	// Whatever is no fast-forward is a mistake of the volume's.
	if err := r.contains(update); err != nil {
		return fmt.Errorf("push %s: %w", update.Ref, err)
	}
	linkObjects(r.t, r.store, r.upstream.Dir)
	writeRef(r.t, r.upstream.Dir, update.Ref, update.Tip.String())
	return nil
}

func (r *nodeRemote) contains(update remote.Update) error {
	if update.Expected.IsZero() {
		return nil
	}
	repository, err := history.Open(r.store)
	if err != nil {
		return err
	}
	defer repository.Close()
	contains, err := repository.Contains(update.Tip, update.Expected)
	if err == nil && !contains && update.Ref != history.MetadataRef {
		err = errors.New("it is no fast-forward")
	}
	if errors.Is(err, history.ErrNotCommit) && update.Ref == history.MetadataRef {
		return nil
	}
	return err
}

// DeleteBranch implements writeable.Remote.
func (r *nodeRemote) DeleteBranch(_ context.Context, ref string, tip object.ID) error {
	if err := r.begin("delete"); err != nil {
		return err
	}
	now, found := refsOf(r.t, r.upstream.Dir)[ref]
	if !found {
		return nil
	}
	if now != tip.String() {
		return &remote.Moved{Ref: ref, Tip: r.parse(now)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keeps {
		return &remote.Declined{Ref: ref, Words: "deletion prohibited"}
	}
	return os.Remove(filepath.Join(r.upstream.Dir, ref))
}

func (r *nodeRemote) parse(text string) object.ID {
	r.t.Helper()
	id, err := object.Parse(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *nodeRemote) tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Env = append(gittest.Environment("/dev/null"), "GIT_DIR="+r.store)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (r *nodeRemote) git(args ...string) string {
	r.t.Helper()
	out, err := r.tryGit(args...)
	if err != nil {
		r.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return out
}

// linkObjects gives one repository all the objects of another.
func linkObjects(t *testing.T, from, to string) {
	t.Helper()
	from, to = filepath.Join(from, "objects"), filepath.Join(to, "objects")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(d.Name(), "tmp_") {
			return err
		}
		there := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			if err := os.Mkdir(there, 0o755); !errors.Is(err, fs.ErrExist) {
				return err
			}
			return nil
		}
		if err := os.Link(path, there); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// refsOf are the refs of a repository that has packed none.
func refsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	refs := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		id, err := os.ReadFile(path)
		refs[strings.TrimPrefix(path, dir+"/")] = strings.TrimSpace(string(id))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return refs
}

func writeRef(t *testing.T, dir, name, id string) {
	t.Helper()
	path := filepath.Join(dir, name)
	file, err := os.CreateTemp(dir, "ref")
	if err == nil {
		_, err = file.WriteString(id + "\n")
		err = errors.Join(err, file.Close(), os.MkdirAll(filepath.Dir(path), 0o755))
	}
	if err == nil {
		err = os.Rename(file.Name(), path) // Nobody reads a half of it.
	}
	if err != nil {
		t.Fatal(err)
	}
}
