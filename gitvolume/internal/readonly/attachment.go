package readonly

import (
	"context"
	"fmt"
	"sync"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// Attachment is a read-only volume on this node, from Attach or Resume to Detach. None of
// its methods but Save and Detach waits for a disk, and none for a remote.
type Attachment struct {
	followers  *Followers
	follower   *follower
	checkout   *checkout
	volume     Volume // As it was attached; it stays so.
	attributes attributes.Volume

	// Those are Followers.mu's.
	scope    scope // As whom the volume is followed from now on.
	proven   scope // As whom it was let in last.
	stale    bool  // Nothing was fetched since it was attached.
	failing  bool  // The last attempt failed, or there was none since the restart.
	refused  bool  // The last attempt told that the scope may not be let in.
	demanded bool

	credentialMu sync.Mutex
	credential   *credential.Credential // nil: it did not come yet.

	recordMu sync.Mutex
	record   store.Record
	ended    bool
}

// Dir is the tree, of which pods are to see a read-only mount. It is the same as long as
// the volume is attached.
func (a *Attachment) Dir() string { return a.followers.dir(a.checkout.key) }

// Attributes are what the volume follows.
func (a *Attachment) Attributes() attributes.Volume { return a.attributes }

// Record is the volume's record as it is kept.
func (a *Attachment) Record() store.Record {
	a.recordMu.Lock()
	defer a.recordMu.Unlock()
	return a.record
}

// Save changes the volume's record, durably. What it follows is not to be changed.
func (a *Attachment) Save(change func(*store.Record)) error {
	a.recordMu.Lock()
	defer a.recordMu.Unlock()
	next := a.record
	change(&next)
	if a.ended {
		return fmt.Errorf("save the record of volume %q: %w", next.Handle, store.ErrNoRecord)
	}
	if err := a.followers.settings.Store.Save(next); err != nil {
		return err
	}
	a.record = next
	return nil
}

// end keeps the record from being written again.
func (a *Attachment) end() {
	a.recordMu.Lock()
	defer a.recordMu.Unlock()
	a.ended = true
}

// TakeCredential has the volume followed as this credential from now on; what is shown
// stays until it was let in. It costs nothing if it is the one that counts already.
func (a *Attachment) TakeCredential(c *credential.Credential) {
	if !a.takes(c) {
		return
	}
	s := a.followers.scopeOf(a.volume, c)
	a.followers.mu.Lock()
	a.follower.assign(a, s, c)
	a.followers.mu.Unlock()
	a.volume.Report.Clear(report.CredentialMissing)
}

// HasCredential tells whether the volume waits for no credential.
func (a *Attachment) HasCredential() bool {
	a.credentialMu.Lock()
	defer a.credentialMu.Unlock()
	return a.credential != nil
}

func (a *Attachment) takes(c *credential.Credential) (isNew bool) {
	a.credentialMu.Lock()
	defer a.credentialMu.Unlock()
	if a.credential != nil && (a.credential == c || a.credential.Equal(c)) {
		return false
	}
	a.credential = c
	return true
}

// Demand has the volume pulled at once, or as soon as its repository may be pulled again. A
// volume that never pulls is not.
func (a *Attachment) Demand() {
	a.followers.mu.Lock()
	defer a.followers.mu.Unlock()
	if !a.attributes.Pull.IsNever() {
		a.demanded = true
		a.follower.poke()
	}
}

// Detach is that of Followers.
func (a *Attachment) Detach(ctx context.Context) error {
	return a.followers.Detach(ctx, a.volume.handle())
}

// isFixed tells that what the volume shows cannot change any more.
func (a *Attachment) isFixed() bool {
	_, isCommit := a.attributes.Ref.Commit()
	return isCommit || a.attributes.Pull.IsNever()
}
