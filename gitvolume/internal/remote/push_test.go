package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

const metadataRef = "refs/git-csi/metadata"

// pushing is a store with commits that the remote does not have.
type pushing struct {
	t      *testing.T
	c      *Command
	b      *gittest.Bare
	store  *gittest.Bare
	remote Remote
}

func newPushing(t *testing.T, c *Command, b *gittest.Bare, remote Remote) *pushing {
	return &pushing{t: t, c: c, b: b, store: gittest.NewBare(t), remote: remote}
}

// update is a new commit of the store, built on what the ref of the remote is now.
func (p *pushing) update(ref, content string) Update {
	p.t.Helper()
	expected := p.b.Tip(ref)
	var parents []string
	if expected != "" {
		p.store.Git("fetch", "-q", "--no-tags", p.b.Dir, expected)
		parents = append(parents, expected)
	}
	tip := p.store.Commit(map[string]string{"f": content}, parents...)
	return Update{Ref: ref, Tip: id(p.t, tip), Expected: id(p.t, expected)}
}

func (p *pushing) push(branch Update, metadata *Update) (Pushed, error) {
	p.t.Helper()
	return p.c.Push(p.t.Context(), Push{Dir: p.store.Dir, Remote: p.remote, Branch: branch, Metadata: metadata})
}

// arrived fails unless the remote has the update.
func (p *pushing) arrived(update Update) {
	p.t.Helper()
	if got := p.b.Tip(update.Ref); got != update.Tip.String() {
		p.t.Errorf("%s of the remote is at %q, want %s", update.Ref, got, update.Tip)
	}
}

// unmoved fails unless the remote is where the update was built on.
func (p *pushing) unmoved(update Update) {
	p.t.Helper()
	if got := p.b.Tip(update.Ref); id(p.t, got) != update.Expected {
		p.t.Errorf("%s of the remote is at %q, want %s", update.Ref, got, update.Expected)
	}
}

func onEachKindPush(t *testing.T, test func(p *pushing)) {
	t.Helper()
	onEachKind(t, func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) { test(newPushing(t, c, b, remote)) })
}

func onQuickKindsPush(t *testing.T, test func(p *pushing)) {
	t.Helper()
	on(t, quickKinds(), func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) { test(newPushing(t, c, b, remote)) })
}

func TestPush(t *testing.T) {
	onEachKindPush(t, func(p *pushing) {
		t := p.t
		// C39 (b): the first push makes the branch of an empty repository.
		for _, content := range []string{"1", "2"} {
			branch, metadata := p.update("refs/heads/main", content), p.update(metadataRef, content)
			pushed, err := p.push(branch, &metadata)
			if err != nil || pushed.Metadata != nil {
				t.Fatalf("%+v, %v", pushed, err)
			}
			p.arrived(branch)
			p.arrived(metadata)
			// The same once more, as after an answer that was lost.
			if pushed, err := p.push(branch, &metadata); err != nil || pushed.Metadata != nil {
				t.Errorf("again: %+v, %v", pushed, err)
			}
		}
		// A tag of the same name makes a short name mean two refs (C38).
		p.b.SetRef("refs/tags/main", p.b.Tip(metadataRef))
		branch := p.update("refs/heads/main", "3")
		if _, err := p.push(branch, nil); err != nil {
			t.Fatal(err)
		}
		p.arrived(branch)
		if refs := p.b.Refs(); len(refs) != 3 || refs["refs/tags/main"] != refs[metadataRef] {
			t.Errorf("the remote's refs are %v", refs)
		}
		p.b.Git("fsck", "--strict")
	})
}

func TestPushMoved(t *testing.T) {
	onQuickKindsPush(t, func(p *pushing) {
		t := p.t
		base := p.b.Grow("main", "f", "0")
		top := p.b.Grow("main", "f", "1")
		other := p.b.Commit(map[string]string{"f": "other"})
		for _, row := range []struct{ name, tip string }{
			{"ahead", p.b.Commit(map[string]string{"g": "1"}, top)},
			{"rewritten", other},
			// A plain push would succeed and bring back the commit that upstream dropped.
			{"taken back", base},
			// A plain push would make it again.
			{"deleted", ""},
		} {
			p.b.SetRef("refs/heads/main", top)
			branch := p.update("refs/heads/main", "mine")
			metadata := p.update(metadataRef, "mine")
			if row.tip == "" {
				p.b.Git("update-ref", "-d", "refs/heads/main")
			} else {
				p.b.SetRef("refs/heads/main", row.tip)
			}
			withs := []*Update{&metadata}
			if row.name == "taken back" {
				withs = append(withs, nil)
			}
			for _, with := range withs {
				_, err := p.push(branch, with)
				var moved *Moved
				if !errors.As(err, &moved) || moved.Tip != id(t, row.tip) || moved.Ref != branch.Ref {
					t.Errorf("%s: %v", row.name, err)
				}
			}
			if p.b.Tip("refs/heads/main") != row.tip || p.b.Tip(metadataRef) != "" {
				t.Errorf("%s: the remote's refs are %v", row.name, p.b.Refs())
			}
		}
	})
}

func TestPushDeclined(t *testing.T) {
	onEachKindPush(t, func(p *pushing) {
		p.b.Grow("main", "f", "0")
		calls := filepath.Join(t.TempDir(), "calls")
		p.b.Hook("pre-receive", "echo >>"+calls+`; echo "GH006: Protected branch update failed" >&2; exit 1`)
		branch, metadata := p.update("refs/heads/main", "1"), p.update(metadataRef, "1")
		for i, with := range []*Update{nil, &metadata} {
			_, err := p.push(branch, with)
			var declined *Declined
			if !errors.As(err, &declined) || !strings.Contains(declined.Words, "GH006: Protected branch update failed") {
				p.t.Errorf("%v", err)
			}
			content, _ := os.ReadFile(calls)
			if got := strings.Count(string(content), "\n"); got != 1+2*i {
				p.t.Errorf("the hook was called %d times", got)
			}
		}
		p.unmoved(branch)
		p.unmoved(metadata)
		p.b.Hook("pre-receive", "")
		if pushed, err := p.push(branch, &metadata); err != nil || pushed.Metadata != nil {
			p.t.Errorf("once nothing refuses: %+v, %v", pushed, err)
		}
	})
}

// TestPushOfTwo is C47.
func TestPushOfTwo(t *testing.T) {
	refuse := func(ref string) string { return `test "$1" != ` + ref + ` || { echo "not $1" >&2; exit 1; }` }
	isMoved := func(err error) bool { var moved *Moved; return errors.As(err, &moved) }
	for _, row := range []struct {
		name     string
		prepare  func(p *pushing)
		metadata func(error) bool
		branch   func(error) bool
		single   bool
	}{
		{name: "(a) metadata refused", prepare: func(p *pushing) { p.b.Hook("update", refuse(metadataRef)) }, metadata: isDeclined},
		{name: "(b) branch refused", prepare: func(p *pushing) { p.b.Hook("update", refuse("refs/heads/main")) }, branch: isDeclined},
		{name: "(c) not atomic", prepare: func(p *pushing) { p.b.Git("config", "receive.advertiseAtomic", "false") }, single: true},
		{name: "(c) not atomic, metadata refused", prepare: func(p *pushing) {
			p.b.Git("config", "receive.advertiseAtomic", "false")
			p.b.Hook("update", refuse(metadataRef))
		}, metadata: isDeclined},
		{name: "(d) metadata moved", prepare: func(p *pushing) {
			p.b.SetRef(metadataRef, p.b.Commit(map[string]string{"g": "g"}, p.b.Tip(metadataRef)))
		}, metadata: isMoved},
		{name: "(e) metadata deleted", prepare: func(p *pushing) { p.b.Git("update-ref", "-d", metadataRef) }, metadata: isMoved},
		{name: "(f) metadata rewritten", prepare: func(p *pushing) {
			p.b.SetRef(metadataRef, p.b.Commit(map[string]string{"g": "g"}))
		}, metadata: isMoved},
		{name: "both moved", prepare: func(p *pushing) {
			p.b.Git("update-ref", "-d", metadataRef)
			p.b.Git("update-ref", "-d", "refs/heads/main")
		}, branch: isMoved},
	} {
		t.Run(row.name, func(t *testing.T) {
			kinds := quickKinds()
			if row.single {
				kinds = map[string]func(testing.TB, *gittest.Bare) Remote{"local": local, "ssh": overSSH, "https": overHTTPS}
			}
			on(t, kinds, func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) {
				p := newPushing(t, c, b, remote)
				p.b.Grow("main", "f", "0")
				p.b.SetRef(metadataRef, p.b.Commit(map[string]string{"m": "0"}))
				branch, metadata := p.update("refs/heads/main", "1"), p.update(metadataRef, "1")
				row.prepare(p)
				before := p.b.Refs()
				pushed, err := p.push(branch, &metadata)
				if (row.branch == nil) != (err == nil) || row.branch != nil && !row.branch(err) {
					p.t.Errorf("the branch: %v", err)
				}
				if (row.metadata == nil) != (pushed.Metadata == nil) || row.metadata != nil && !row.metadata(pushed.Metadata) {
					p.t.Errorf("the metadata: %v", pushed.Metadata)
				}
				after := p.b.Refs()
				if err == nil {
					before[branch.Ref] = branch.Tip.String()
				}
				if err == nil && pushed.Metadata == nil {
					before[metadataRef] = metadata.Tip.String()
				}
				if fmt.Sprint(before) != fmt.Sprint(after) {
					p.t.Errorf("the remote's refs are %v, want %v", after, before)
				}
				if p.c.takesSingly(p.remote.URL) != row.single {
					p.t.Errorf("that the remote takes no two refs at once is remembered as %t", p.c.takesSingly(p.remote.URL))
				}
			})
		})
	}
}

// TestMetadataThatIsNoCommit is C47 (f): the driver's own ref is built anew.
func TestMetadataThatIsNoCommit(t *testing.T) {
	onQuickKindsPush(t, func(p *pushing) {
		p.b.Grow("main", "f", "0")
		p.b.SetRef(metadataRef, p.b.Git("rev-parse", "main:f"))
		branch := p.update("refs/heads/main", "1")
		p.store.Git("fetch", "-q", p.b.Dir, metadataRef)
		metadata := Update{Ref: metadataRef, Tip: branch.Tip, Expected: id(p.t, p.b.Tip(metadataRef))}
		if pushed, err := p.push(branch, &metadata); err != nil || pushed.Metadata != nil {
			p.t.Fatalf("%+v, %v", pushed, err)
		}
		p.arrived(metadata)
	})
}

func TestNeverAForce(t *testing.T) {
	b := gittest.NewBare(t)
	p := newPushing(t, newCommand(t), b, local(t, b))
	p.b.Grow("main", "f", "0")
	good := p.update("refs/heads/main", "1")
	unrelated := good
	unrelated.Tip = id(t, p.store.Commit(map[string]string{"f": "unrelated"}))
	unknown := good
	unknown.Expected = id(t, strings.Repeat("12", 20))
	for _, row := range []struct {
		name   string
		branch Update
		want   error
	}{
		{"an unrelated commit", unrelated, ErrNotAhead},
		{"on a commit that is not there", unknown, ErrNotAhead},
		{"a short name", Update{Ref: "main", Tip: good.Tip, Expected: good.Expected}, errNoUpdate},
		{"a refspec", Update{Ref: "refs/heads/main:refs/heads/x", Tip: good.Tip, Expected: good.Expected}, errNoUpdate},
		{"a pattern", Update{Ref: "refs/heads/*", Tip: good.Tip, Expected: good.Expected}, errNoUpdate},
		{"no tip", Update{Ref: "refs/heads/main", Expected: good.Expected}, errNoUpdate},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := p.push(row.branch, nil)
			wantError(t, err, row.want)
			p.unmoved(good)
		})
	}
}

// TestPushBesideMetadataThatCannotGo: the branch arrives, and the metadata is left as it
// is.
func TestPushBesideMetadataThatCannotGo(t *testing.T) {
	for name, row := range map[string]struct {
		change func(p *pushing, metadata *Update)
		want   error
	}{
		"on a commit that is not here": {func(p *pushing, m *Update) {
			m.Tip = id(p.t, p.store.Commit(map[string]string{"f": "built on nothing"}))
		}, ErrNotAhead},
		"beside its commits":     {func(p *pushing, m *Update) { m.Tip, m.Expected = m.Expected, m.Tip }, ErrNotAhead},
		"a tip that is not here": {func(p *pushing, m *Update) { m.Tip = id(p.t, strings.Repeat("12", 20)) }, ErrFailed},
		"no tip":                 {func(p *pushing, m *Update) { m.Tip = id(p.t, "") }, errNoUpdate},
		"no full name":           {func(p *pushing, m *Update) { m.Ref = "metadata" }, errNoUpdate},
	} {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBare(t)
			b.Grow("main", "f", "0")
			before := b.Commit(map[string]string{"m": "0"})
			b.SetRef(metadataRef, before)
			p := newPushing(t, newCommand(t), b, local(t, b))
			branch := p.update("refs/heads/main", "1")
			metadata := p.update(metadataRef, "1")
			if name == "on a commit that is not here" {
				before = b.Commit(map[string]string{"m": "another's"})
				b.SetRef(metadataRef, before)
				metadata.Expected = id(t, before)
			}
			row.change(p, &metadata)
			pushed, err := p.push(branch, &metadata)
			check(t, err)
			wantError(t, pushed.Metadata, row.want)
			p.arrived(branch)
			if got := b.Tip(metadataRef); got != before {
				t.Errorf("the metadata is at %s, was at %s", got, before)
			}
			// A branch that cannot go is an error of its own, beside any metadata.
			branch.Expected, branch.Tip = branch.Tip, branch.Expected
			if _, err := p.push(branch, &metadata); !errors.Is(err, ErrNotAhead) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestDeleteBranch(t *testing.T) {
	onQuickKindsPush(t, func(p *pushing) {
		ctx, store, side := p.t.Context(), p.store.Dir, "refs/heads/main.handle"
		p.b.Grow("main", "f", "0")
		ours := p.b.Grow("main.handle", "f", "1")
		theirs := p.b.Grow("main.handle", "f", "2")
		var moved *Moved
		if err := p.c.DeleteBranch(ctx, store, p.remote, side, id(p.t, ours)); !errors.As(err, &moved) || moved.Tip != id(p.t, theirs) {
			p.t.Errorf("with another's commit on it: %v", err)
		}
		if p.b.Tip(side) != theirs {
			p.t.Error("it was deleted with another's commit on it")
		}
		p.b.Hook("pre-receive", "echo no >&2; exit 1")
		if err := p.c.DeleteBranch(ctx, store, p.remote, side, id(p.t, theirs)); !isDeclined(err) {
			p.t.Errorf("refused: %v", err)
		}
		p.b.Hook("pre-receive", "")
		for range 2 {
			if err := p.c.DeleteBranch(ctx, store, p.remote, side, id(p.t, theirs)); err != nil {
				p.t.Error(err)
			}
		}
		if refs := p.b.Refs(); len(refs) != 1 {
			p.t.Errorf("left are %v", refs)
		}
	})
}

// TestManyWriters is C47 (d): two volumes with a branch each push their metadata at the
// same moment, and no entry of either is lost.
func TestManyWriters(t *testing.T) {
	const rounds = 4
	b := gittest.NewBare(t)
	c := newCommand(t)
	remote := overHTTP(t, b)
	var writers sync.WaitGroup
	stores := []*gittest.Bare{gittest.NewBare(t), gittest.NewBare(t)}
	for i, store := range stores {
		writers.Go(func() {
			branch := fmt.Sprintf("refs/heads/%d", i)
			for round := range rounds {
				if err := write(t, c, store, remote, branch, round); err != nil {
					t.Errorf("writer %d in round %d: %v", i, round, err)
				}
			}
		})
	}
	writers.Wait()
	// Each writer's commit adds one to the history of the record.
	if got := b.Git("rev-list", "--count", metadataRef); got != fmt.Sprint(2*rounds) {
		t.Errorf("the record has %s commits, want %d", got, 2*rounds)
	}
}

// write pushes one commit to the branch, and a record that is built anew whenever
// another's came first.
func write(t *testing.T, c *Command, store *gittest.Bare, remote Remote, branch string, round int) error {
	refs, err := c.List(t.Context(), remote, branch, metadataRef)
	if err != nil {
		return err
	}
	build := func(ref string, update Update) Update {
		var parents []string
		if !update.Expected.IsZero() {
			parents = []string{update.Expected.String()}
		}
		update.Ref = ref
		update.Tip = id(t, store.Commit(map[string]string{"f": branch + fmt.Sprint(round)}, parents...))
		return update
	}
	branchUpdate := build(branch, Update{Expected: refs.Tip(branch)})
	for range 20 {
		fetched, err := c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{metadataRef: "refs/x/metadata"}})
		if err != nil {
			return err
		}
		metadata := build(metadataRef, Update{Expected: fetched[metadataRef].Commit})
		pushed, err := c.Push(t.Context(), Push{Dir: store.Dir, Remote: remote, Branch: branchUpdate, Metadata: &metadata})
		var declined *Declined
		switch {
		case err != nil:
			return err
		case pushed.Metadata == nil:
			return nil
		case errors.As(pushed.Metadata, &declined):
			continue // The other writer held the ref's lock.
		}
		branchUpdate.Expected = branchUpdate.Tip
	}
	return errors.New("20 times another's record came first")
}
