package writeable

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
)

// upstream is what the remote has. Zero ids are of what it has not.
type upstream struct {
	// tip and side are the commits of the ref and of the side branch.
	tip, side object.ID
	// record is what the metadata ref names, be it a commit or not.
	record object.ID
	// missing is a *remote.MissingRef if there is no ref.
	missing error
}

// fetch brings what the remote has into the store.
func (v *Volume) fetch(ctx context.Context) (upstream, error) {
	fetched, err := v.Remote.Fetch(ctx, v.wanted(), remote.Foreground)
	if err != nil {
		return upstream{}, err
	}
	return v.read(ctx, fetched)
}

// fetchAnew is fetch where the remote is known to have changed.
func (v *Volume) fetchAnew(ctx context.Context) (upstream, error) {
	fetched, err := v.Remote.FetchAnew(ctx, v.wanted(), remote.Foreground)
	if err != nil {
		return upstream{}, err
	}
	return v.read(ctx, fetched)
}

// wanted are the refs to fetch.
func (v *Volume) wanted() map[string]string {
	return map[string]string{v.Ref: v.Refs.Upstream, v.Side: v.Refs.UpstreamSide, history.MetadataRef: v.Refs.UpstreamMetadata}
}

// read reads what was fetched.
func (v *Volume) read(ctx context.Context, fetched map[string]remote.Fetched) (up upstream, err error) {
	up = upstream{record: fetched[history.MetadataRef].Tip}
	if up.tip, err = commitOf(fetched, v.Ref); err != nil {
		return upstream{}, err
	}
	// What is no commit is nobody's side branch of this driver.
	up.side = fetched[v.Side].Tip
	if up.tip.IsZero() {
		refs, err := v.Remote.List(ctx, v.Ref)
		if err != nil {
			return upstream{}, err
		}
		if _, up.missing = refs.Resolve(v.Ref); up.missing == nil {
			return upstream{}, fmt.Errorf("%s was made just now: %w", v.Ref, remote.ErrUnreachable)
		}
	}
	return up, nil
}

func commitOf(fetched map[string]remote.Fetched, ref string) (object.ID, error) {
	f := fetched[ref]
	if !f.Gone && f.Commit.IsZero() {
		return object.ID{}, fmt.Errorf("%s: %w", ref, history.ErrNotCommit)
	}
	return f.Commit, nil
}

// isEmpty tells whether the remote has no ref at all.
func (up upstream) isEmpty() bool {
	var missing *remote.MissingRef
	return errors.As(up.missing, &missing) && missing.Empty
}

// upstreamRecord is the record that the remote has of a branch. One that cannot be used is
// none, and said; unreadable tells of one that must not be replaced.
func (v *Volume) upstreamRecord(tip object.ID, branch string) (record metadata.Record, unreadable error) {
	record, err := v.Repository.Record(tip, branch)
	switch {
	case errors.Is(err, metadata.ErrVersion):
		return record, err
	case err != nil:
		v.sayRecordLost(err)
		return metadata.Record{}, nil
	}
	return record, nil
}

// ownsSide tells whether the remote's side branch is this volume's: one of the commits
// that it has beyond the ref carries its trailer, and is none that it left behind.
func (v *Volume) ownsSide(up upstream) (bool, error) {
	if up.side == v.position.Side {
		return true, nil
	}
	own, err := v.lastOwn(up.side)
	if err != nil || own.IsZero() {
		return false, err
	}
	if left, err := v.isLeft(own, up); left || err != nil {
		return false, err
	}
	if own == up.side || up.tip.IsZero() {
		return true, nil
	}
	// What the ref has, it has with all before it: no older one need be looked at. One look a
	// commit would take hours with a long branch of somebody's.
	merged, err := v.Repository.Contains(up.tip, own)
	return !merged && err == nil, err
}

// lastOwn is the last commit of the volume on a side branch, zero if that has none.
func (v *Volume) lastOwn(side object.ID) (object.ID, error) {
	commit, err := v.Repository.CommitOf(side)
	if errors.Is(err, history.ErrNotCommit) || err == nil && commit != side {
		return object.ID{}, nil
	}
	if err != nil {
		return object.ID{}, err
	}
	for range mostSideCommits {
		described, err := v.Repository.Describe(commit)
		if err != nil {
			return object.ID{}, err
		}
		if v.isOwn(described.Message) {
			return commit, nil
		}
		if len(described.Parents) == 0 {
			break
		}
		commit = described.Parents[0]
	}
	return object.ID{}, nil
}

// mostSideCommits is how far back a side branch is searched for a commit of the volume.
const mostSideCommits = 10_000
