package writeable

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/store"
)

// rerecord is a position with the volume's record, for the branch, on top of what the
// remote's metadata ref has now. On the ref, whose record others write too, it is the
// volume's own changes over theirs, path by path, without those of files that are gone.
func (v *Volume) rerecord(p store.Position, branch string, up upstream) (store.Position, error) {
	record := v.record
	v.unfit = metadata.Record{}
	var err error
	// The side branch's is the volume's own alone, unless another node went on there.
	if branch == v.Ref || p.Side != v.position.Side {
		theirs, unreadable := v.Repository.Record(up.record, branch)
		switch {
		case errors.Is(unreadable, metadata.ErrVersion):
			return v.withoutRecord(p, up, unreadable), nil
		case !v.Arming.Policy.Metadata:
			return v.withoutRecord(p, up, nil), nil
		case unreadable != nil || up.record.IsZero():
			// Nobody took the entries out: the ref was deleted, or overwritten.
			if unreadable != nil {
				v.sayRecordLost(unreadable)
			}
			record, err = v.pruned(record, p.Tip)
		default:
			record, err = v.over(theirs, p.Tip)
		}
		if err != nil {
			return p, err
		}
	}
	if !record.Fits() {
		return v.withoutOwn(p, branch, record, up), nil
	}
	if p.Metadata, err = v.commitRecord(branch, record, up.record); err != nil {
		return p, fmt.Errorf("record the metadata: %w", err)
	}
	if branch == v.Ref && p.Diverged {
		// Nobody needs that of the side branch any more.
		if p.Metadata, err = v.commitRecord(v.Side, metadata.Record{}, p.Metadata); err != nil {
			return p, fmt.Errorf("record the metadata: %w", err)
		}
	}
	p.MetadataBase = up.record
	if branch == v.Ref {
		p.MetadataAgreed = v.recordCommit(up)
	}
	return p, nil
}

// takeOver has the volume's own changes be over the record that the remote has by now, and
// gives the tree what others changed there. The record must not be ahead of the tree: the
// next look at all of that would take what it was never given for what the application
// removed or set back, and have it go from the remote too.
func (v *Volume) takeOver(ctx context.Context, up upstream) error {
	then, err := v.rerecord(v.position, v.Ref, up)
	if err != nil {
		return err
	}
	return v.moveTo(ctx, then)
}

// withoutOwn is a position whose record is the remote's, as the volume's own over it cannot
// be written. It counts on in this process, and is made again by the next one.
func (v *Volume) withoutOwn(p store.Position, branch string, record metadata.Record, up upstream) store.Position {
	v.unfit = record
	p.Partial = true
	p.MetadataBase, p.Metadata = up.record, v.recordCommit(up)
	if branch == v.Ref {
		p.MetadataAgreed = p.Metadata
	}
	return p
}

// readRecord reads the volume's record of its position.
func (v *Volume) readRecord() {
	defer v.sayRecordFits()
	if v.overfull = v.position.Partial && v.unfit.Len() > 0; v.overfull {
		v.record, v.foreign = v.unfit, false
		return
	}
	record, unreadable := v.upstreamRecord(v.position.Metadata, v.branch())
	if unreadable != nil {
		v.sayRecordKept(unreadable)
	}
	v.record, v.foreign = record, unreadable != nil
	v.partial = v.position.Partial
}

// over is the volume's own changes over another's record, for the files of a tip.
func (v *Volume) over(theirs metadata.Record, tip object.ID) (metadata.Record, error) {
	own, err := v.ownDelta()
	if err != nil {
		return theirs, err
	}
	record, err := theirs.Apply(own)
	if err != nil {
		return theirs, err
	}
	return v.pruned(record, tip)
}

// ownDelta is what the volume's record has that its remote's had not, when they last
// agreed.
func (v *Volume) ownDelta() (metadata.Delta, error) {
	agreed, unreadable := v.upstreamRecord(v.position.MetadataAgreed, v.Ref)
	return metadata.Diff(agreed, v.record), unreadable
}

// pruned is a record without the files that are in the tree now and not in the tip to
// come.
func (v *Volume) pruned(record metadata.Record, tip object.ID) (metadata.Record, error) {
	tree, err := v.commitTree(tip)
	if err != nil {
		return record, err
	}
	differences, err := v.Repository.Diff(v.tipTree, tree)
	if err != nil {
		return record, err
	}
	gone := metadata.Delta{}
	for _, d := range differences {
		if d.To == (history.Side{}) && !record.Entry(d.Path).IsZero() {
			gone[d.Path] = metadata.Entry{}
		}
	}
	if len(gone) == 0 {
		return record, nil
	}
	return record.Apply(gone)
}

// recordCommit is what the remote's metadata ref names, if it is a commit; else zero.
func (v *Volume) recordCommit(up upstream) object.ID {
	if _, err := v.commitTree(up.record); err != nil {
		return object.ID{}
	}
	return up.record
}

// withoutRecord is a position without anything to say about metadata: the remote's record
// is one that must not be replaced, as of a newer driver, or the class keeps none.
func (v *Volume) withoutRecord(p store.Position, up upstream, why error) store.Position {
	if why != nil {
		v.sayRecordKept(why)
	}
	p.MetadataBase, p.Metadata = up.record, v.recordCommit(up)
	p.MetadataAgreed = p.Metadata
	return p
}
