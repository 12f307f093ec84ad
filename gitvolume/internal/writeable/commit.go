package writeable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/worktree"
)

// commit commits what is on the agenda: what there is of it becomes the tip. quiet says
// that the tree was not being written.
func (v *Volume) commit(ctx context.Context, quiet bool) error {
	began := time.Now()
	result, err := v.scan(ctx, v.Repository)
	if err != nil {
		return err
	}
	made, err := v.draft(result)
	isNew := made.position != v.position
	if err == nil && isNew {
		err = v.settle(made.position)
	}
	if err != nil {
		// The next look finds it once more, and its events have been taken.
		v.unannounced = true
		return fmt.Errorf("commit: %w", err)
	}
	if isNew {
		v.clock.committed(began, quiet)
		v.sayCommitted(time.Since(began))
	}
	v.clock.quiet = quiet
	v.tipTree, v.record, v.memory, v.seen = made.tree, made.record, result.Memory, nil
	v.pending, v.pendingPath = 0, ""
	v.agenda = agenda{}
	v.overfull = made.overfull
	v.partial = v.partial && !v.keepsRecord()
	v.sayRecordFits()
	if err := v.noteLate(result, true); err != nil {
		return err
	}
	v.looked(result)
	if !quiet {
		// The look when it is quiet, which has the push be due.
		v.clock.wrote(began)
	}
	return nil
}

// drafted is a commit that is not durable yet.
type drafted struct {
	position store.Position
	tree     object.ID
	record   metadata.Record
	overfull bool // The record is, and stays as it was.
}

// draft makes the objects of a commit, of its tree and of its metadata record, as far as
// something changed.
func (v *Volume) draft(result *worktree.Result) (drafted, error) {
	defer v.Keeper.Native()()
	made := drafted{position: v.position, record: v.record}
	var err error
	if made.tree, err = v.Repository.Edit(v.tipTree, result.Changes); err != nil {
		return made, err
	}
	if made.tree != v.tipTree || v.position.Tip.IsZero() && len(result.Changes) > 0 {
		draft := history.Draft{Tree: made.tree, Author: v.committer(), Committer: v.committer(), Message: v.message(result)}
		if !v.position.Tip.IsZero() {
			draft.Parents = []object.ID{v.position.Tip}
		}
		if made.position.Tip, err = v.Repository.Commit(draft); err != nil {
			return made, err
		}
	}
	if !v.keepsRecord() {
		made.position.Partial = made.position.Partial || len(result.Metadata) > 0
		return made, nil
	}
	if made.record, err = v.record.Apply(result.Metadata); err != nil {
		return made, err
	}
	switch {
	case made.record.Equal(v.record) && !v.position.Partial:
	case !made.record.Fits():
		made.position.Partial, made.overfull = true, true
	default:
		made.position.Partial = false
		made.position.Metadata, err = v.commitRecord(v.branch(), made.record, v.position.Metadata)
	}
	return made, err
}

// keepsRecord tells whether commits take the record of modes and owners along.
func (v *Volume) keepsRecord() bool { return v.Arming.Policy.Metadata && !v.foreign }

// settle makes pending objects durable and then the position that names them the one that
// counts.
func (v *Volume) settle(p store.Position) error {
	defer v.Keeper.Native()()
	v.step("flush the objects")
	if err := v.Repository.Flush(); err != nil {
		return err
	}
	if err := v.anchor(p); err != nil {
		return err
	}
	return v.keep(p)
}

// supersede is settle for a record that was rebuilt on the remote's. The one before is no
// part of its history, and has to stay until the position does not name it any more.
func (v *Volume) supersede(p store.Position) error {
	defer v.Keeper.Native()()
	v.step("flush the objects")
	if err := v.Repository.Flush(); err != nil {
		return err
	}
	if err := v.setRef(v.Refs.NextMetadata, p.Metadata); err != nil {
		return fmt.Errorf("keep %s from being removed: %w", p.Metadata, err)
	}
	if err := v.keep(p); err != nil {
		return err
	}
	return v.anchor(p)
}

// commitRecord commits a record for a branch on top of a commit of the metadata ref. One
// that holds nothing usable is gone on with, if it is a commit, and else started anew.
func (v *Volume) commitRecord(branch string, record metadata.Record, on object.ID) (object.ID, error) {
	recording := history.Recording{Keep: on, Parent: on, Branch: branch, Record: record, Committer: v.committer()}
	id, err := v.Repository.CommitRecord(recording)
	if errors.Is(err, history.ErrRecord) {
		recording.Keep = object.ID{}
		if _, err := v.Repository.CommitTree(on); err != nil {
			recording.Parent = object.ID{}
		}
		id, err = v.Repository.CommitRecord(recording)
	}
	return id, err
}

// keepMemory keeps what is remembered of the tree, so that the next process need not read
// all of it.
func (v *Volume) keepMemory() {
	now := store.Remembered{Tip: v.position.Tip, Metadata: v.position.Metadata}
	if v.remembered == now || v.memory == nil {
		return
	}
	if err := v.Keeper.KeepMemory(now, v.memory); err != nil {
		v.Log.Warn("could not write down what is remembered of the tree: the next start reads all of it", "error", err)
		return
	}
	v.remembered = now
}

// recall brings back what was remembered of the tree. What the tip changed since, and
// everything if there is nothing, is read by the next scan.
func (v *Volume) recall() error {
	of, memory := v.Keeper.Memory()
	if v.position.Partial && v.keepsRecord() {
		memory = nil // It would hide what the record lacks.
	}
	if memory != nil {
		edits, err := v.editsFrom(of.Tip)
		if err == nil {
			memory = memory.With(edits)
			edits, err = v.recordedSince(of.Metadata, memory)
		}
		if err == nil {
			v.memory, v.remembered = v.withEmpty(memory.With(edits)), of
			return nil
		}
		v.Log.Info("what was remembered of the tree cannot be used; all of it is read again", "error", err)
	}
	return v.forget()
}

// forget forgets what the tree looked like when it was committed. The next scan reads all of
// it.
func (v *Volume) forget() error {
	var empty *worktree.Memory
	edits, err := v.differences(object.ID{}, v.tipTree)
	if err != nil {
		return err
	}
	v.memory = v.withEmpty(empty.With(edits))
	return nil
}

// recordedSince has all be looked at of which the record is another than when the memory was
// kept: the memory may show what a file was like before, and the file be so again. What is
// to be replayed is as the record has it before anything is looked at.
func (v *Volume) recordedSince(commit object.ID, memory *worktree.Memory) ([]worktree.Edit, error) {
	if commit == v.position.Metadata || v.position.Replaying || !v.keepsRecord() {
		return nil, nil
	}
	before, err := v.Repository.Record(commit, v.branch())
	if err != nil {
		return nil, err
	}
	var edits []worktree.Edit
	for path := range metadata.Diff(before, v.record) {
		if e := memory.Entry(path); e != (worktree.Entry{}) {
			e.Stat = worktree.Stat{}
			edits = append(edits, worktree.Edit{Path: path, Entry: e})
		}
	}
	return edits, nil
}

// withEmpty is a memory with the directories that the record has as empty ones: no commit
// tells of them, and one that is not remembered could not be missed. Those that the tree may
// not have been given yet are not among them.
func (v *Volume) withEmpty(memory *worktree.Memory) *worktree.Memory {
	if !v.keepsRecord() || v.position.Replaying || v.position.Partial {
		return memory
	}
	var edits []worktree.Edit
	for path, entry := range v.record.All() {
		if entry.Kind == metadata.Empty && canHold(memory, path) {
			edits = append(edits, worktree.Edit{Path: path, Entry: worktree.Entry{Mode: object.Directory}})
		}
	}
	return memory.With(edits)
}

// canHold tells whether nothing is remembered at a path, nor a file on the way there.
func canHold(memory *worktree.Memory, path string) bool {
	if memory.Entry(path) != (worktree.Entry{}) {
		return false
	}
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if mode := memory.Entry(path[:i]).Mode; mode != 0 && mode != object.Directory {
			return false
		}
	}
	return true
}

// editsFrom is what another commit's memory lacks to be one of the tip.
func (v *Volume) editsFrom(commit object.ID) ([]worktree.Edit, error) {
	if commit == v.position.Tip {
		return nil, nil
	}
	tree, err := v.commitTree(commit)
	if err != nil {
		return nil, err
	}
	return v.differences(tree, v.tipTree)
}

func (v *Volume) differences(from, to object.ID) ([]worktree.Edit, error) {
	defer v.Keeper.Native()()
	differences, err := v.Repository.Diff(from, to)
	if err != nil {
		return nil, err
	}
	return worktree.EditsOf(differences, v.Repository)
}
