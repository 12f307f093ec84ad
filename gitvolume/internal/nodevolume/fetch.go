package nodevolume

import (
	"context"
	"errors"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// Fetch brings what the remote has of the volume, so that Publish has little to wait for.
// remote.ErrInProgress says that the fetch goes on. Where there is a tree already, nobody
// is kept from it by a remote that cannot be asked; where there is none, the errors are
// those of the fetch, ErrVolatile and store.ErrFull.
func (v *Volume) Fetch(ctx context.Context) error {
	kept := v.hasTree()
	if !kept {
		if err := v.checkRoom(); err != nil {
			return err
		}
	}
	v.Access.Begin()
	err := v.fetch(ctx)
	v.doneUnlessCut(ctx, err)
	if err == nil || !kept || errors.Is(err, remote.ErrInProgress) || ctx.Err() != nil {
		return err
	}
	v.Log.Warn("the remote cannot be asked before the volume starts", "error", err)
	return nil
}

// doneUnlessCut ends what Access.Begin began, unless only the call was too short for it.
func (v *Volume) doneUnlessCut(ctx context.Context, err error) {
	if err == nil || !errors.Is(err, remote.ErrInProgress) && ctx.Err() == nil {
		v.Access.Done()
	}
}

func (v *Volume) fetch(ctx context.Context) error {
	release, err := v.repository.Use(ctx)
	if err != nil {
		return err
	}
	defer release()
	wanted := map[string]string{}
	for _, ref := range []string{v.Branch, attributes.SideBranch(v.Branch, v.handle()), history.MetadataRef} {
		wanted[ref] = store.RemoteRef(ref)
	}
	_, err = v.Access.Fetch(ctx, wanted, remote.Foreground)
	if err == nil {
		v.repository.Written()
	}
	return err
}
