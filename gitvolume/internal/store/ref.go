package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// The refs of a repository that are the driver's. Nothing else makes refs there.
const (
	ownRefs      = "refs/git-csi/"
	remoteRefs   = ownRefs + "remote/"
	volumeRefs   = ownRefs + "volumes/"
	checkoutRefs = ownRefs + "checkouts/"
)

// Anchor is what a volume's ref keeps from being collected.
type Anchor string

// The anchors of a volume.
const (
	AnchorTip          Anchor = "tip"           // Position.Tip.
	AnchorNext         Anchor = "next"          // A commit that is about to become the tip.
	AnchorMetadata     Anchor = "metadata"      // Position.Metadata.
	AnchorNextMetadata Anchor = "next-metadata" // One that is about to become that.
	AnchorAgreed       Anchor = "agreed"        // Position.MetadataAgreed.
)

// RemoteRef is the ref of the store that is as the remote's is, of which that is the full
// name, or the commit's id.
func RemoteRef(full string) string { return remoteRefs + refPart(full) }

// VolumeRef is the ref of the store that keeps an object for a volume.
func VolumeRef(volume string, anchor Anchor) string {
	return volumeRefs + refPart(volume) + "/" + string(anchor)
}

// CheckoutRef is the ref of the store that keeps a commit for a checkout: AnchorTip what it
// holds, AnchorNext what it is about to hold.
func CheckoutRef(key string, anchor Anchor) string { return checkoutRefs + key + "/" + string(anchor) }

// refPart is a text as one part of a ref: no two have the same, and none is a directory of
// another's. What would be too long, or what git takes for a lock, is cut and has its sum
// at the end, after what no escaped text has.
func refPart(text string) string {
	escaped := object.EscapeRef(text)
	if len(escaped) <= object.MaxRefPart && !strings.HasSuffix(escaped, ".lock") {
		return escaped
	}
	sum := sha256.Sum256([]byte(text))
	end := "%_" + hex.EncodeToString(sum[:])
	return escaped[:min(len(escaped), object.MaxRefPart-len(end))] + end
}

// remoteRefsOf are the refs of the store that a record's volume follows: what its ref can
// be, its side branch, the metadata, and what its checkout holds.
func remoteRefsOf(r Record) []string {
	names := []string{r.Ref}
	if !strings.HasPrefix(r.Ref, "refs/") {
		names = append(names, "refs/heads/"+r.Ref, "refs/tags/"+r.Ref)
	}
	if r.Kind == Writeable {
		for _, branch := range names {
			names = append(names, attributes.SideBranch(branch, r.Handle))
		}
	}
	refs := []string{RemoteRef(history.MetadataRef)}
	if r.Reading != nil {
		refs = append(refs, CheckoutRef(r.Reading.Checkout, AnchorTip), CheckoutRef(r.Reading.Checkout, AnchorNext))
	}
	for _, name := range names {
		refs = append(refs, RemoteRef(name))
	}
	return refs
}
