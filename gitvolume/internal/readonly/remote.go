package readonly

import (
	"context"

	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// Remote is a repository elsewhere, as one credential is shown it.
type Remote interface {
	// Look and LookAnew tell where the refs are that the names stand for, as those of
	// access.Access.
	Look(ctx context.Context, names []string) (map[string]Looked, error)
	LookAnew(ctx context.Context, names []string) (map[string]Looked, error)
	// Fetch and FetchAnew are those of access.Access. In the background they wait for their
	// turn before they Hold the repository.
	Fetch(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error)
	FetchAnew(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error)
}

// Looked is what a name stands for, or why for nothing, which is a *remote.MissingRef.
type Looked struct {
	Ref remote.Ref
	Err error
}

// Asked is as whom a Remote is asked, and for which repository of the store.
type Asked struct {
	Repository store.Repository
	Credential *credential.Credential
	Permit     remote.Permit
	Limits     string
}

// Hold has the repository be there, and stay in its place, until release.
func (a Asked) Hold(ctx context.Context) (release func(), err error) { return hold(ctx, a.Repository) }

// Over is the Remote of an access, whose credential is given and stays.
func Over(a *access.Access) Remote { return accessed{a} }

type accessed struct{ *access.Access }

// Look implements Remote.
func (a accessed) Look(ctx context.Context, names []string) (map[string]Looked, error) {
	return resolved(names)(a.Access.Look(ctx, names...))
}

// LookAnew implements Remote.
func (a accessed) LookAnew(ctx context.Context, names []string) (map[string]Looked, error) {
	return resolved(names)(a.Access.LookAnew(ctx, names...))
}

// resolved finds the names among what a look has found.
func resolved(names []string) func(refs *remote.Refs, err error) (map[string]Looked, error) {
	return func(refs *remote.Refs, err error) (map[string]Looked, error) {
		if err != nil {
			return nil, err
		}
		looked := map[string]Looked{}
		for _, name := range names {
			ref, err := refs.Resolve(name)
			looked[name] = Looked{Ref: ref, Err: err}
		}
		return looked, nil
	}
}
