package readonly

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// Volume is a read-only volume as it is asked for.
type Volume struct {
	// Record has the handle, the kind and what is known of the claim. The rest of it is
	// made of the Attributes, except by Resume, which takes it as it was loaded.
	Record     store.Record
	Attributes attributes.Volume
	// Credential is never nil at Attach: a volume without a Secret has the anonymous one.
	// Resume takes none.
	Credential *credential.Credential
	// Permit refuses addresses; nil permits all. Limits is another where it refuses others.
	Permit remote.Permit
	Limits string
	// Report stays the caller's, to be closed after Detach.
	Report *report.Volume
}

func (v Volume) handle() string { return v.Record.Handle }

// record is what is kept of the volume, which shows nothing yet.
func (v Volume) record() store.Record {
	r := v.Record
	r.URL, r.Ref, r.Depth, r.Reading = v.Attributes.URL, v.Attributes.Ref.String(), v.Attributes.Depth, nil
	return r
}

// isOf tells whether the record is of a volume that follows the same.
func (v Volume) isOf(r store.Record) bool {
	return r.URL == v.Attributes.URL && r.Ref == v.Attributes.Ref.String() && r.Depth == v.Attributes.Depth
}

// attributesOf reads back what a record keeps of a volume's attributes.
func attributesOf(r store.Record) (attributes.Volume, error) {
	kind := attributes.KindReadOnlyClaim
	if r.Kind == store.Inline {
		kind = attributes.KindInline
	}
	// What may be reached was decided when the volume was attached.
	read, err := attributes.Rules{Local: true}.Parse(kind, map[string]string{
		"url": r.URL.String(), "ref": r.Ref, "depth": strconv.Itoa(r.Depth), "pull": r.Reading.Pull, "offline": r.Reading.Offline,
	}, r.Handle)
	if err != nil {
		return attributes.Volume{}, fmt.Errorf("read the record of volume %q: %w", r.Handle, err)
	}
	return read, nil
}

// scope is as whom a repository is asked: the credential, whom it trusts, and which
// addresses may be reached. It is written to the disk, and tells nobody anything who has
// not got the key.
type scope string

func (f *Followers) scopeOf(v Volume, c *credential.Credential) scope {
	identity := c.Identity(f.settings.Key)
	sum := sha256.Sum256(fmt.Appendf(identity[:], " %t %s", v.Permit == nil, v.Limits))
	return scope(hex.EncodeToString(sum[:]))
}

// checkoutKey is that of the tree that a volume shares with those that are to see the same.
// A commit is given where the tree never leaves it.
func checkoutKey(a attributes.Volume, s scope, commit object.ID) string {
	return store.CheckoutKey(sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q %q", a.URL, a.Ref, a.Depth, a.Pull, s, commit)))
}

// ownKey is that of a tree that a volume shares with nobody.
func ownKey(shared, handle string) string {
	return store.CheckoutKey(sha256.Sum256(fmt.Appendf(nil, "%q %q", shared, handle)))
}
