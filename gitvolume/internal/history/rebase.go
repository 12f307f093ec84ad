package history

import (
	"cmp"
	"context"
	"fmt"
	"sort"

	"liken.sh/gitvolume/internal/object"
)

// Replay is a volume's own commits and where they are to go.
type Replay struct {
	// Base is the commit the own ones were made on; zero if they begin a history.
	Base object.ID
	// Tip is the last of the own commits.
	Tip object.ID
	// Onto is the commit that is to come before them.
	Onto object.ID
	// Committer is who replays, and when. Authors stay.
	Committer Signature
	// Merger decides where both sides changed the same.
	Merger Merger
}

// Rebased is what a rebase made.
type Rebased struct {
	// Tip is the last commit; Onto if no own one is left.
	Tip object.ID
	// Replayed and Dropped are how many own commits are in Tip and how many are not,
	// since they changed nothing any more.
	Replayed, Dropped int
}

// Rebase replays the own commits, one after the other, as `git rebase` does with
// --reapply-cherry-picks and --empty=drop and without looking for renamed directories.
// All of it is durable when it returns, and no ref has moved. Where git sees a conflict
// the error is a *Conflict.
//
// A commit is dropped only if it changes nothing where it is replayed: one that upstream
// took over and reverted comes back. One that was made without a change stays. One that
// merges, which only others make, is replayed as its change to its first parent.
func (r *Repository) Rebase(ctx context.Context, replay Replay) (Rebased, error) {
	done, err := r.rebase(ctx, replay)
	if err != nil {
		return Rebased{}, fmt.Errorf("rebase %s onto %s: %w", replay.Tip, replay.Onto, err)
	}
	if err := r.Flush(); err != nil {
		return Rebased{}, fmt.Errorf("rebase %s onto %s: %w", replay.Tip, replay.Onto, err)
	}
	return done, nil
}

func (r *Repository) rebase(ctx context.Context, replay Replay) (Rebased, error) {
	own, err := r.ownOf(replay)
	if err != nil {
		return Rebased{}, err
	}
	done := Rebased{Tip: replay.Onto}
	tree, err := r.treeOf(replay.Onto)
	if err != nil {
		return Rebased{}, err
	}
	m := r.newMerging(replay.Merger)
	for _, commit := range own {
		if err := ctx.Err(); err != nil {
			return Rebased{}, err
		}
		step, err := m.replay(ctx, commit, tree)
		if err != nil {
			return Rebased{}, err
		}
		if step.from == done.Tip {
			// It stands where it belongs: git does not make it anew either.
			done.Tip, done.Replayed, tree = commit, done.Replayed+1, step.to
			continue
		}
		if step.tree == tree && step.changes {
			done.Dropped++
			continue
		}
		tree = step.tree
		done.Tip, err = r.Commit(Draft{
			Tree: tree, Parents: []object.ID{done.Tip},
			Author: step.said.Author.orNamed(), author: step.said.author,
			Committer: replay.Committer, Message: step.said.Message,
		})
		if err != nil {
			return Rebased{}, fmt.Errorf("replay %s: %w", commit, err)
		}
		done.Replayed++
	}
	return done, nil
}

// ownOf are the commits to be replayed, oldest first. Those that Onto already has are
// not, such as the first of two when only that one was pushed.
func (r *Repository) ownOf(replay Replay) ([]object.ID, error) {
	own, err := r.Own(replay.Base, replay.Tip)
	if err != nil || len(own) == 0 || replay.Onto == replay.Base {
		return own, err
	}
	// Mostly it has none, which one look tells.
	contains, err := r.Contains(replay.Onto, own[0])
	if err != nil || !contains {
		return own, err
	}
	var failed error
	at := sort.Search(len(own), func(i int) bool {
		contains, err := r.Contains(replay.Onto, own[i])
		failed = cmp.Or(failed, err)
		return !contains
	})
	return own[at:], failed
}

// replayed is one own commit, replayed on a tree.
type replayed struct {
	// from is the commit's parent, to its own tree.
	from, to object.ID
	// tree is the commit's changes in the tree it was replayed on.
	tree object.ID
	// changes tells whether the commit differs from its parent at all.
	changes bool
	// said is what the commit says.
	said Description
}

// replay makes a commit's changes in a tree.
func (m *merging) replay(ctx context.Context, commit, on object.ID) (replayed, error) {
	d, err := m.repository.Describe(commit)
	if err != nil {
		return replayed{}, err
	}
	s := replayed{to: withoutEmpty(d.Tree), said: d}
	var base object.ID
	if len(d.Parents) > 0 {
		s.from = d.Parents[0]
		if base, err = m.repository.treeOf(s.from); err != nil {
			return replayed{}, err
		}
	}
	s.changes = base != s.to
	tree, conflicts, err := m.merge(ctx, base, on, s.to)
	if err != nil {
		return replayed{}, fmt.Errorf("replay %s: %w", commit, err)
	}
	if len(conflicts) > 0 {
		return replayed{}, &Conflict{Commit: commit, Paths: conflicts}
	}
	s.tree = tree
	return s, nil
}

// treeOf is a commit's tree; the zero id if it is empty.
func (r *Repository) treeOf(commit object.ID) (object.ID, error) {
	tree, err := r.CommitTree(commit)
	return withoutEmpty(tree), err
}
