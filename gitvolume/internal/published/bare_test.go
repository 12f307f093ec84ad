package published_test

import (
	"testing"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/attributes"
)

// A volume without any Secret waits for none, also when the flags changed with the restart:
// what nobody's credential may reach is another thing then.
func TestNobodysVolumeAfterFlagsChanged(t *testing.T) {
	f := newForge(t)
	f.wanted.Store("")
	pattern, err := attributes.ParsePattern("127.0.0.1")
	n := newNodeOverHTTP(t)
	n.must(err)
	addresses, err := attributes.ParseAddresses([]string{"127.0.0.1"})
	n.must(err)
	n.addresses = addresses
	n.restart()
	inline, claimed := n.inline("a", f.url).published(), n.claimed("pv", "b", f.url).published()
	n.rules.Allow = append(n.rules.Allow, pattern)
	f.Grow("main", "f", "2")
	n.restart()
	for _, p := range []*pod{inline, claimed} {
		p.becomes("CredentialMissing")
		p.published()
	}
	inline.becomes("")
	inline.shows("f", "2")
	// A stage may have brought a Secret: only the cluster knows.
	claimed.becomes("CredentialMissing")
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.StageSecret = "apps/s" })
	claimed.published().becomes("CredentialMissing")
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.StageSecret = "" })
	claimed.published().shows("f", "2")
	claimed.becomes("")
}
