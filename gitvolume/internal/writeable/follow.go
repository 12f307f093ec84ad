package writeable

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/worktree"
)

// treeConflict is the error of a move of the tree in whose way is what the application
// wrote since its last commit.
type treeConflict struct {
	// paths are none if an earlier process, or try, knew them.
	paths []string
	// moved says that this came out when the tree had been moved: it is where it was to be,
	// but for these paths, which are as the application has them.
	moved bool
}

func (c *treeConflict) Error() string {
	if len(c.paths) == 0 {
		return "changed both by upstream and by the application, as the tree was moved"
	}
	return "changed both by upstream and by the application: " + printed(c.paths)
}

// printed names the first of some paths, and how many there are beside them.
func printed(paths []string) string {
	shown := make([]string, 0, 3)
	for _, path := range paths[:min(len(paths), 3)] {
		shown = append(shown, printable(path))
	}
	text := strings.Join(shown, ", ")
	if more := len(paths) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// follow takes the volume to where the ref is now, its own commits on top. The error is a
// *history.Conflict or a *treeConflict if that cannot be.
func (v *Volume) follow(ctx context.Context, up upstream) error {
	before := v.position
	then, replayed, err := v.onto(ctx, before.Base, up.tip)
	if err == nil {
		then, err = v.rerecord(then, v.Ref, up)
	}
	if err != nil {
		return err
	}
	takenBack, err := v.takenBack(before.Base, up.tip)
	if err != nil {
		return err
	}
	then.Base, then.Followed = up.tip, true
	err = v.moveTo(ctx, then)
	if v.position.Tip == then.Tip {
		v.sayRebased(replayed, up.tip, takenBack)
		v.clock.pushed()
		v.owe()
		if !v.position.HasUnpushed() {
			v.sayUpToDate() // Only the answer to a push was lost.
		}
	}
	return err
}

// onto is the position with the volume's own commits beyond base on top of a branch's tip,
// and how many are left of them. What of them the branch has already stays where it is.
func (v *Volume) onto(ctx context.Context, base, tip object.ID) (then store.Position, replayed int, err error) {
	defer v.Keeper.Native()()
	then = v.position
	own := then.Tip
	then.Tip = tip
	if own.IsZero() || own == base {
		return then, 0, nil
	}
	contained, err := v.Repository.Contains(tip, own)
	if err != nil || contained {
		return then, 0, err
	}
	if base, err = v.lastContained(base, tip); err != nil {
		return then, 0, err
	}
	began := time.Now()
	rebased, err := v.Repository.Rebase(ctx, history.Replay{
		Base: base, Tip: own, Onto: tip, Committer: v.committer(), Merger: v.Merger,
	})
	var conflict *history.Conflict
	if err == nil || errors.As(err, &conflict) {
		v.Durations.Rebased(time.Since(began))
	}
	then.Tip = rebased.Tip
	return then, rebased.Replayed, err
}

// takenBack is the commit that the branch was at, if the branch was forced back since and
// does not have it any more; none else, and where too little was fetched to know.
func (v *Volume) takenBack(was, tip object.ID) (object.ID, error) {
	if was.IsZero() || was == tip {
		return object.ID{}, nil
	}
	defer v.Keeper.Native()()
	contained, err := v.Repository.Contains(tip, was)
	if contained || errors.Is(err, history.ErrShallow) {
		return object.ID{}, nil
	}
	return was, err
}

// lastContained is the last own commit that the ref has already, as when the answer to a
// push was lost and others pushed after it; base if it has none.
func (v *Volume) lastContained(base, tip object.ID) (object.ID, error) {
	own, err := v.Repository.Own(base, v.position.Tip)
	if err != nil {
		return object.ID{}, err
	}
	var failed error
	// A history that holds a commit holds those before it.
	n := sort.Search(len(own), func(i int) bool {
		contains, err := v.Repository.Contains(tip, own[i])
		if err != nil {
			failed = err
		}
		return !contains
	})
	if failed != nil || n == 0 {
		return base, failed
	}
	return own[n-1], nil
}

// moveTo moves the tree and with it the volume to another position.
func (v *Volume) moveTo(ctx context.Context, then store.Position) error {
	v.step("flush the objects")
	if err := v.Repository.Flush(); err != nil {
		return err
	}
	// Before anything relies on them.
	if err := v.setRef(v.Refs.Next, then.Tip); err != nil {
		return err
	}
	if err := v.setRef(v.Refs.NextMetadata, then.Metadata); err != nil {
		return err
	}
	tree, err := v.commitTree(then.Tip)
	if err != nil {
		return err
	}
	mover, done := v.mover(then), v.Keeper.Native()
	moved, err := mover.Move(ctx, v.tipTree, tree)
	done()
	if err != nil {
		return err
	}
	if len(moved.Conflicts) > 0 {
		return &treeConflict{paths: moved.Conflicts}
	}
	return v.arrive(ctx, moved, then.Late)
}

// finishMove finishes a move that was interrupted.
func (v *Volume) finishMove(ctx context.Context) error {
	if move := v.position.Move; move != nil {
		mover := v.mover(move.Then)
		done := v.Keeper.Native()
		moved, err := mover.Resume(ctx, intentOf(move))
		done()
		switch {
		case errors.Is(err, history.ErrMalformed):
			// Nothing finishes that: as with a lost repository, the tree counts as it is.
			return fmt.Errorf("%w: %w", history.ErrDamaged, err)
		case err != nil:
			return err
		}
		return v.divergeLate(ctx, v.arrive(ctx, moved, move.Then.Late))
	}
	if v.position.Replaying {
		if err := v.replay(ctx, nil); err != nil {
			return err
		}
	}
	if v.position.IsLateOnRef() {
		return v.divergeLate(ctx, &treeConflict{moved: true})
	}
	return nil
}

// divergeLate has a volume whose tree was moved diverge if that came out with a conflict,
// from what is known of the remote without asking it.
func (v *Volume) divergeLate(ctx context.Context, err error) error {
	var written *treeConflict
	switch {
	case !errors.As(err, &written):
		return err
	case v.position.Diverged:
		return nil // It has.
	}
	return v.diverge(ctx, upstream{tip: v.position.Base, record: v.position.MetadataBase}, err)
}

func (v *Volume) mover(then store.Position) *worktree.Mover {
	return &worktree.Mover{
		Tree: v.tree, Source: v.Repository, Memory: v.memory, Fresh: v.Fresh,
		Intents: &intents{volume: v, before: v.position, then: then}, Vacated: v.vacated(then),
	}
}

// vacated are the empty directories that a record to come has no more. One that cannot be
// read says nothing.
func (v *Volume) vacated(then store.Position) []string {
	if !v.Arming.Policy.Metadata || then.Metadata == v.position.Metadata && then.Diverged == v.position.Diverged {
		return nil
	}
	branch := v.Ref
	if then.Diverged {
		branch = v.Side
	}
	record, err := v.Repository.Record(then.Metadata, branch)
	if err != nil {
		return nil
	}
	if then.Partial && v.unfit.Len() > 0 {
		record = v.unfit // What is written lacks the volume's own.
	}
	return metadata.Vacated(v.record, record)
}

// arrive makes what was moved the state of the volume, whose position is there already.
// wasLate says that there were late paths before.
func (v *Volume) arrive(ctx context.Context, moved *worktree.Moved, wasLate bool) error {
	before := v.record
	var err error
	if v.tipTree, err = v.commitTree(v.position.Tip); err != nil {
		return err
	}
	v.memory, v.seen = moved.Memory, nil
	v.readRecord()
	if err := v.anchor(v.position); err != nil {
		return err
	}
	paths := append([]string{}, moved.Written...) // Not nil, which is all.
	// What a partial record lacks is no news of the remote's.
	if !v.partial {
		for path := range metadata.Diff(before, v.record) {
			if path != metadata.Root || !v.ForeignRoot {
				paths = append(paths, path)
			}
		}
	}
	if err := v.replay(ctx, paths); err != nil {
		return err
	}
	v.sayRefused(moved.Refused)
	switch {
	case wasLate:
		return &treeConflict{moved: true}
	case len(moved.Late) > 0 || v.position.Late:
		return &treeConflict{paths: moved.Late, moved: true}
	}
	return nil
}

// replay gives files that were put in place their metadata; nil paths are all.
func (v *Volume) replay(ctx context.Context, paths []string) error {
	if v.Arming.Policy.Metadata && (paths != nil || !v.partial) {
		record, err := v.replayed()
		if err != nil {
			return err
		}
		replay := worktree.Replay{Memory: v.memory, Record: record, Fresh: v.Fresh, Root: v.Root}
		var memory *worktree.Memory
		if paths == nil {
			memory, err = v.tree.ReplayAll(ctx, replay)
		} else {
			memory, err = v.tree.ReplayPaths(ctx, replay, paths)
		}
		if err != nil {
			return err
		}
		v.memory = memory
	}
	p := v.position
	p.Replaying = false
	return v.keep(p)
}

// replayed is what of the record the tree is given.
func (v *Volume) replayed() (metadata.Record, error) {
	if !v.ForeignRoot || v.record.Entry(metadata.Root).IsZero() {
		return v.record, nil
	}
	return v.record.Apply(metadata.Delta{metadata.Root: metadata.Entry{}})
}

// intents keeps the one move of the tree in the volume's position.
type intents struct {
	volume       *Volume
	before, then store.Position
}

// intentOf is the move as the tree knows it.
func intentOf(m *store.Move) worktree.Intent {
	return worktree.Intent{From: m.FromTree, To: m.ToTree, Token: m.Token}
}

// Store implements worktree.Intents.
func (i *intents) Store(intent worktree.Intent) error {
	p := i.before
	if p.Tree != i.then.Tree {
		// A fresh tree, which holds nothing.
		p = store.Position{Tree: i.then.Tree}
	}
	p.Move = &store.Move{
		From: i.before.Tip, To: i.then.Tip,
		FromTree: intent.From, ToTree: intent.To, Token: intent.Token, Then: i.then,
	}
	return i.volume.keep(p)
}

// Done implements worktree.Intents.
func (i *intents) Done(_ worktree.Intent, late bool) error {
	p := i.then
	p.Move, p.Replaying = nil, true
	// Those of before count on. On the side branch there is no need to diverge for others.
	p.Late = p.Late || late && !p.Diverged
	return i.volume.keep(p)
}

// Abandon implements worktree.Intents.
func (i *intents) Abandon(worktree.Intent) error { return i.volume.keep(i.before) }
