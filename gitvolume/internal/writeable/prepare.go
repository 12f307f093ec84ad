package writeable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/worktree"
)

// Prepare brings the tree to where an application may have it, while none has it: it makes
// it, or takes what is there up to what the remote has. After an error it may be called
// again. remote.ErrInProgress says that the repository is still being fetched, ErrReplaced
// that the directory has to be set aside first, ErrForeignTree that it is somebody else's.
// A remote that cannot be asked keeps nobody from a tree that is there.
func (v *Volume) Prepare(ctx context.Context) error {
	release, err := v.Use(ctx)
	if err != nil {
		return err
	}
	defer release()
	kept, err := v.open(ctx)
	if err != nil {
		return err
	}
	up, err := v.fetch(ctx)
	switch {
	case err == nil && kept:
		v.sayFetched()
		err = v.reconcile(ctx, up)
	case err == nil:
		// A ref that is missing is what the fetch has failed for, and goes on failing for.
		if err = v.make(ctx, up); !errors.Is(err, remote.ErrNoRef) {
			v.sayFetched()
		}
	case errors.Is(err, remote.ErrInProgress) || ctx.Err() != nil:
	case kept:
		v.sayStale(err)
		err = nil
	}
	if err != nil {
		return err
	}
	return v.giveToGroup(ctx)
}

// Resume takes up a volume where an earlier process left it, without asking the remote.
// Somebody may have the tree.
func (v *Volume) Resume(ctx context.Context) error {
	release, err := v.Use(ctx)
	if err != nil {
		return err
	}
	defer release()
	kept, err := v.open(ctx)
	if err == nil && !kept {
		err = fmt.Errorf("%s: %w", v.Dir, ErrReplaced)
	}
	return err
}

// open opens the tree if there is one of this volume, and finishes what a crash
// interrupted.
func (v *Volume) open(ctx context.Context) (kept bool, err error) {
	if v.tree == nil {
		there, err := v.exists()
		if err != nil || !there || v.position.Tree == (store.Identity{}) {
			return false, err
		}
		root, err := store.Identify(v.Dir)
		if err != nil {
			return false, err
		}
		if root != v.position.Tree {
			return false, fmt.Errorf("%s: %w", v.Dir, ErrReplaced)
		}
		if v.tree, err = worktree.Open(v.Dir); err != nil {
			return false, err
		}
		if err := v.bringBack(); err != nil {
			return false, errors.Join(err, v.closeTree())
		}
	}
	return true, v.finishMove(ctx)
}

// closeTree closes the tree, which is opened anew by the next try.
func (v *Volume) closeTree() error {
	tree := v.tree
	v.tree = nil
	return tree.Close()
}

// bringBack reads what belongs to the position.
func (v *Volume) bringBack() error {
	if err := v.anchor(v.position); err != nil {
		return err
	}
	var err error
	if v.tipTree, err = v.commitTree(v.position.Tip); err != nil {
		return fmt.Errorf("read the commit that the tree holds: %w", err)
	}
	v.readRecord()
	if err := v.recall(); err != nil {
		return fmt.Errorf("read the commit that the tree holds: %w", err)
	}
	v.agenda.addEverything()
	if v.position.Diverged {
		v.sayDiverged(errBefore)
	}
	v.owe()
	return nil
}

// owe has what the remote lacks be due.
func (v *Volume) owe() {
	if v.position.Owes() {
		v.clock.committed(v.tipTime(), true)
		v.countAhead()
	}
}

// make makes the tree of a volume that has none here: as it was, if it was lost, or as the
// remote has it.
func (v *Volume) make(ctx context.Context, up upstream) error {
	then := v.position
	lost := !then.Tip.IsZero()
	var err error
	if !lost {
		if then, err = v.begin(ctx, up); err != nil {
			return err
		}
	}
	if err := worktree.Make(v.Dir, v.Root.Mode); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: %w", v.Dir, ErrForeignTree)
		}
		return err
	}
	if then.Tree, err = store.Identify(v.Dir); err != nil {
		return err
	}
	if v.tree, err = worktree.Open(v.Dir); err != nil {
		return err
	}
	v.memory, v.tipTree = nil, object.ID{}
	// What was not committed is lost with the tree.
	then.Move, then.Late = nil, false
	if err := v.moveTo(ctx, then); err != nil {
		return errors.Join(err, v.closeTree())
	}
	v.agenda.addEverything()
	v.owe()
	if lost {
		v.sayLost()
		return v.reconcile(ctx, up)
	}
	v.sayBegun()
	return nil
}

// begin is where a volume starts that has nothing here: at the ref; at its side branch, if
// it is diverged; or at nothing, if the remote is empty.
func (v *Volume) begin(ctx context.Context, up upstream) (store.Position, error) {
	if up.tip.IsZero() && !up.isEmpty() {
		return store.Position{}, up.missing
	}
	p := store.Position{Tip: up.tip, Base: up.tip, Followed: !up.tip.IsZero(), MetadataBase: up.record}
	p.Metadata = v.recordCommit(up)
	p.MetadataAgreed = p.Metadata
	if up.side.IsZero() || up.tip.IsZero() {
		return p, nil
	}
	base, open, err := v.openSide(ctx, up)
	if err != nil || base == nil {
		return p, err
	}
	if !open {
		// Which tip the volume pushed, only the node knows that did.
		own, err := v.lastOwn(up.side)
		if own == up.side {
			p.Leaving = own
		} else {
			p.Left = own
		}
		p.LeftAt = up.tip
		return p, err
	}
	p.Tip, p.Base, p.Side, p.Diverged = up.side, *base, up.side, true
	return p, nil
}

// reconcile takes a tree that nobody has up to what the remote has.
func (v *Volume) reconcile(ctx context.Context, up upstream) error {
	var err error
	v.agenda.addEverything()
	if v.Arming.Unarmed == nil {
		err = v.commit(ctx, true)
	} else {
		_, err = v.look(ctx)
	}
	if err != nil {
		return err
	}
	if up.tip.IsZero() {
		v.sayGone(up)
		return nil
	}
	v.sayThere()
	if v.position.Diverged || !up.side.IsZero() {
		if done, err := v.reconcileSide(ctx, up); done || err != nil {
			return err
		}
	}
	if up.tip == v.position.Base {
		v.sayUpstreamFollowed()
		return v.takeRecord(ctx, up)
	}
	if v.pending > 0 {
		v.sayUpstreamMoved(up.tip)
		return nil
	}
	return v.catchUp(ctx, up)
}

// takeRecord gives a tree that nobody has the modes, owners and empty directories that
// changed on the remote while no commit did, as when the pod was on another node.
func (v *Volume) takeRecord(ctx context.Context, up upstream) error {
	if up.record == v.position.MetadataBase || v.pending > 0 {
		return nil
	}
	return v.takeOver(ctx, up)
}

// catchUp follows upstream with a tree that nobody has.
func (v *Volume) catchUp(ctx context.Context, up upstream) error {
	err := v.follow(ctx, up)
	var conflict *history.Conflict
	var written *treeConflict
	switch {
	case err == nil:
		v.sayUpstreamFollowed()
	case errors.As(err, &written) && !written.moved:
		// What the policy keeps from being committed, and upstream changed.
		v.sayUpstreamMoved(up.tip)
		return nil
	case errors.As(err, &conflict) || errors.As(err, &written):
		return v.diverge(ctx, up, err)
	}
	return err
}

func (v *Volume) giveToGroup(ctx context.Context) error {
	if v.Group == nil {
		return nil
	}
	memory, err := v.tree.GiveToGroup(ctx, *v.Group, v.memory)
	if err != nil {
		return err
	}
	v.memory = memory
	return nil
}
