// Package policy reads the parameters of a VolumeAttributesClass into the policy by
// which a writeable volume is committed and pushed. The controller refuses a class, and
// the node goes by it, with this same code.
//
// It must never guess: what it does not know or cannot read is refused, and of several
// mistakes always the same one is named.
package policy
