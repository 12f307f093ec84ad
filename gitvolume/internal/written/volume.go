package written

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"

	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

// Volume is a writeable volume, from Open to Close. TakeCredential, Drop and what only
// tells something may be called at any time; the rest one after the other.
type Volume struct {
	node       *Node
	handle     string
	attributes attributes.Volume
	access     *access.Access
	engine     *nodevolume.Volume
	report     *report.Volume
	log        *slog.Logger
	// isFollowed tells that an application may have the tree.
	isFollowed atomic.Bool

	armingMu sync.Mutex
	arming   writeable.Arming // That counts now.
}

// Dir is the tree.
func (v *Volume) Dir() string { return v.node.settings.Store.TreeDir(v.handle) }

// Attributes are what the volume follows.
func (v *Volume) Attributes() attributes.Volume { return v.attributes }

// Record is what is kept of the volume.
func (v *Volume) Record() store.Record { return v.engine.Record() }

// Save changes the volume's record, durably. What it follows is not to be changed.
func (v *Volume) Save(change func(*store.Record)) error { return v.engine.Save(change) }

// TakeCredential has the remote be asked as this credential from now on. It costs nothing
// if it is the one that counts already.
func (v *Volume) TakeCredential(c *credential.Credential) {
	if v.access.Take(c) {
		v.engine.TakeCredential()
	}
}

// HasCredential tells whether the remote can be asked at all.
func (v *Volume) HasCredential() bool { return v.access.HasCredential() }

// DropCredential forgets the credential.
func (v *Volume) DropCredential() { v.access.Drop() }

// Demand does nothing: what is pulled on demand never reaches a tree that somebody writes.
func (v *Volume) Demand() {}

// IsFollowed tells whether an application may have the tree.
func (v *Volume) IsFollowed() bool { return v.isFollowed.Load() }

// Arm has another class count, from now on and after a restart. It may be called at any
// time, and does nothing if it is what counts already.
func (v *Volume) Arm(arming writeable.Arming) error {
	v.armingMu.Lock()
	defer v.armingMu.Unlock()
	if isSame(v.arming, arming) {
		return nil
	}
	v.arming = arming
	if err := v.engine.Arm(arming); err != nil {
		return fmt.Errorf("write down which class counts: %w", err)
	}
	return nil
}

func isSame(a, b writeable.Arming) bool {
	return a.Class == b.Class && reflect.DeepEqual(a.Policy, b.Policy) && fmt.Sprint(a.Unarmed) == fmt.Sprint(b.Unarmed)
}

// Stage records that the volume is staged, and fetches what the remote has of it.
// remote.ErrInProgress says that the fetch goes on. Without a credential nothing is
// fetched: the publish may bring one.
func (v *Volume) Stage(ctx context.Context) error {
	if !v.Record().Staged {
		if err := v.Save(func(r *store.Record) { r.Staged = true }); err != nil {
			return err
		}
	}
	if !v.access.HasCredential() {
		return nil
	}
	return v.engine.Fetch(ctx)
}

// Publish brings the tree to where an application may have it, and follows it from then
// on. The group is the volume mount group; nil: none.
func (v *Volume) Publish(ctx context.Context, owner string, group *uint32) error {
	if err := v.engine.Belong(owner, group); err != nil {
		return err
	}
	if err := v.engine.Publish(ctx); err != nil {
		return err
	}
	v.isFollowed.Store(true)
	return nil
}

// Resume follows a tree that an application may have had all the time.
func (v *Volume) Resume(ctx context.Context) error {
	if err := v.engine.Resume(ctx); err != nil {
		return err
	}
	v.isFollowed.Store(true)
	return nil
}

// Detach takes back a Publish whose tree nobody has seen.
func (v *Volume) Detach(ctx context.Context) error {
	if err := v.engine.Stop(ctx, 0); err != nil {
		return fmt.Errorf("stop volume %q: %w", v.handle, err)
	}
	v.isFollowed.Store(false)
	return v.Save(func(r *store.Record) { r.Targets = nil })
}

// Close ends a volume that no application has.
func (v *Volume) Close(ctx context.Context) error {
	v.access.Drop()
	err := v.engine.Stop(ctx, 0)
	if r := v.Record(); err == nil && !r.Staged && r.Position == (store.Position{}) {
		// Nothing was ever made of it.
		err = v.node.settings.Store.Remove(v.handle)
	}
	if err != nil && !errors.Is(err, store.ErrNoRecord) {
		return fmt.Errorf("close volume %q: %w", v.handle, err)
	}
	return nil
}
