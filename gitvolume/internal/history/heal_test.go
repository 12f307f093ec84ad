package history

import (
	"testing"

	"liken.sh/gitvolume/internal/object"
)

func TestHealed(t *testing.T) {
	w := newWorkshop(t)
	tree := func(a, b string, more ...string) leaves {
		f := leaves{"a": text(a), "b": text(b)}
		for _, path := range more {
			f[path] = text(path)
		}
		return f
	}
	base := w.commit(t, tree("a", "b"))
	first := w.commit(t, tree("pod", "b"), base)
	side := w.commit(t, tree("pod", "pod"), first)
	// The pod's second commit changes again what its first one did.
	again := w.commit(t, tree("pod again", "b"), first)
	// The pod's commits undo each other.
	undone := w.commit(t, tree("a", "b"), first)
	on := w.commit(t, tree("a", "b", "u"), base)
	rewritten := w.commit(t, tree("pod", "pod", "z"))
	for name, row := range map[string]struct {
		side, ref object.ID
		want      bool
	}{
		"upstream did nothing":                    {side, base, false},
		"upstream did something else":             {side, on, false},
		"merged":                                  {side, w.commit(t, tree("pod", "pod", "u"), on, side), true},
		"fast-forward":                            {side, side, true},
		"merged, and upstream went on":            {side, w.commit(t, tree("later", "pod", "u"), w.commit(t, tree("pod", "pod", "u"), on, side)), true},
		"squashed":                                {side, w.commit(t, tree("pod", "pod", "u"), on), true},
		"squashed, and upstream went on":          {side, w.commit(t, tree("pod", "pod", "u", "v"), w.commit(t, tree("pod", "pod", "u"), on)), true},
		"rebased":                                 {side, w.commit(t, tree("pod", "pod", "u"), w.commit(t, tree("pod", "b", "u"), on)), true},
		"rebased, of which one changed the other": {again, w.commit(t, tree("pod again", "b", "u"), w.commit(t, tree("pod", "b", "u"), on)), true},
		"a part squashed":                         {side, w.commit(t, tree("pod", "b", "u"), on), false},
		"squashed and reverted":                   {side, w.commit(t, tree("a", "b", "u"), w.commit(t, tree("pod", "pod", "u"), on)), false},
		"squashed and half reverted":              {side, w.commit(t, tree("pod", "b", "u"), w.commit(t, tree("pod", "pod", "u"), on)), false},
		"a conflict":                              {side, w.commit(t, tree("other", "pod", "u"), on), false},
		"nothing was left to merge":               {undone, on, true},
		"history rewritten, with the changes":     {side, rewritten, true},
		"history rewritten, to the same tree":     {side, w.commit(t, tree("pod", "pod")), true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, from := range []object.ID{base, {}} {
				replay := w.replay(from, row.side, row.ref)
				replay.Committer = Signature{}
				if got, err := w.repository.Healed(t.Context(), replay); err != nil || got != row.want {
					t.Errorf("with the base %s: %v, %v, want %v", from, got, err, row.want)
				}
			}
		})
	}
}

// TestHealedOneByOne looks at the commits alone, which the look at all of them at once
// mostly spares.
func TestHealedOneByOne(t *testing.T) {
	w := newWorkshop(t)
	base := w.commit(t, leaves{"a": text(numbers()), "b": text("b")})
	first := w.commit(t, leaves{"a": text(numbers("1", "one")), "b": text("b")}, base)
	side := w.commit(t, leaves{"a": text(numbers("1", "one")), "b": text("pod")}, first)
	for name, row := range map[string]struct {
		ref  leaves
		want bool
	}{
		"both":          {leaves{"a": text(numbers("1", "one", "20", "twenty")), "b": text("pod")}, true},
		"the first":     {leaves{"a": text(numbers("1", "one")), "b": text("b")}, false},
		"the second":    {leaves{"a": text(numbers()), "b": text("pod")}, false},
		"a conflict":    {leaves{"a": text(numbers("1", "eins")), "b": text("pod")}, false},
		"none, deleted": {leaves{"b": text("b")}, false},
	} {
		onto := w.commit(t, row.ref, base)
		got, err := w.repository.addsNothingOneByOne(t.Context(), w.replay(base, side, onto))
		if err != nil || got != row.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, row.want)
		}
	}
}

// TestHealedOfMergedByOthers has a side branch that others merged into, so that its first
// parents do not lead to where the pod began.
func TestHealedOfMergedByOthers(t *testing.T) {
	w := newWorkshop(t)
	base := w.commit(t, leaves{"a": text("a")})
	side := w.commit(t, leaves{"a": text("pod")}, base)
	other := w.commit(t, leaves{"a": text("a"), "u": text("u")}, base)
	merged := w.commit(t, leaves{"a": text("pod"), "u": text("u")}, other, side)
	onto := w.commit(t, leaves{"a": text("a"), "v": text("v")}, base)
	got, err := w.repository.Healed(t.Context(), w.replay(side, merged, onto))
	if err != nil || got {
		t.Errorf("%v, %v, want that it is not healed", got, err)
	}
	if got, err := w.repository.Healed(t.Context(), w.replay(side, merged, other)); err != nil || !got {
		t.Errorf("%v, %v, want that what the others merged is there", got, err)
	}
}
