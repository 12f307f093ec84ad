package store

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/csicommon/handle"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

func TestRefsFitWhateverTheyAreOf(t *testing.T) {
	for _, name := range []string{
		"refs/heads/main", strings.Repeat("a", 40), history.MetadataRef, "refs/heads/" + strings.Repeat("n", object.MaxRefPart),
		"refs/heads/" + strings.Repeat("語/", 100) + "x", "refs/heads/a/b", "refs/heads/a",
	} {
		if err := history.CheckRef(RemoteRef(name)); err != nil {
			t.Errorf("%.60q: %v", name, err)
		}
	}
	for _, volume := range []string{"v", "a.lock", "x.lock.lock", strings.Repeat("v", handle.MaxLength), strings.Repeat("v", 248) + ".lock"} {
		for _, anchor := range []Anchor{AnchorTip, AnchorNext, AnchorMetadata, AnchorNextMetadata, AnchorAgreed} {
			if err := history.CheckRef(VolumeRef(volume, anchor)); err != nil {
				t.Errorf("%.60q: %v", volume, err)
			}
		}
	}
}

func TestRefsDiffer(t *testing.T) {
	part := rapid.OneOf(rapid.StringMatching(`[a-z%_./-]{1,8}`), rapid.Just(strings.Repeat("n", 300)), rapid.Just(".lock"))
	texts := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "") })
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts.Draw(t, "a"), texts.Draw(t, "b")
		if (refPart(a) == refPart(b)) != (a == b) {
			t.Fatalf("%q and %q are %q and %q", a, b, refPart(a), refPart(b))
		}
		if strings.Contains(refPart(a), "/") {
			t.Fatalf("%q is %q, which is more than one part", a, refPart(a))
		}
	})
}
