package writeable_test

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
)

// nodeRemote does with plain git what package remote does, and what a test wants to go
// wrong.
type nodeRemote struct {
	t        *testing.T
	upstream *gittest.Bare
	store    string

	mu sync.Mutex
	// down is the error of everything, before is called before each operation, and decline
	// refuses refs.
	down    error
	before  func(operation string)
	decline map[string]string
	lost    bool // The answer to the next push is.
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

// Fetch implements writeable.Remote.
func (r *nodeRemote) Fetch(_ context.Context, refs map[string]string, _ remote.Urgency) (map[string]remote.Fetched, error) {
	if err := r.begin("fetch"); err != nil {
		return nil, err
	}
	r.set(func(r *nodeRemote) { r.fetches++ })
	fetched := map[string]remote.Fetched{}
	there := r.upstream.Refs()
	args := []string{"fetch", "-q", "--no-tags", r.upstream.Dir}
	for name := range refs {
		if there[name] != "" {
			args = append(args, "+"+name+":"+refs[name])
		}
	}
	if len(args) > 4 {
		r.git(args...)
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		tip, found := there[name]
		if !found {
			fetched[name] = remote.Fetched{Gone: true}
			continue
		}
		f := remote.Fetched{Tip: r.parse(tip)}
		if commit, err := r.tryGit("rev-parse", "-q", "--verify", tip+"^{commit}"); err == nil {
			f.Commit = r.parse(commit)
		}
		fetched[name] = f
	}
	return fetched, nil
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
func (r *nodeRemote) Push(_ context.Context, branch remote.Update, metadata *remote.Update) (remote.Pushed, error) {
	if err := r.begin("push"); err != nil {
		return remote.Pushed{}, err
	}
	r.set(func(r *nodeRemote) { r.pushes++ })
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
	var now object.ID
	if tip, found := r.upstream.Refs()[update.Ref]; found {
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
	// Without a plus: whatever is no fast-forward is a mistake of the volume's.
	if out, err := r.tryGit("push", "-q", r.upstream.Dir, update.Tip.String()+":"+update.Ref); err != nil {
		return fmt.Errorf("push %s: %w: %s", update.Ref, err, out)
	}
	return nil
}

// DeleteBranch implements writeable.Remote.
func (r *nodeRemote) DeleteBranch(_ context.Context, ref string, tip object.ID) error {
	if err := r.begin("delete"); err != nil {
		return err
	}
	now, found := r.upstream.Refs()[ref]
	if !found {
		return nil
	}
	if now != tip.String() {
		return &remote.Moved{Ref: ref, Tip: r.parse(now)}
	}
	r.upstream.Git("update-ref", "-d", ref, now)
	return nil
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
