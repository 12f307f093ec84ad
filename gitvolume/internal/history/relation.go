package history

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"liken.sh/gitvolume/internal/object"
)

var (
	// ErrUnrelated says that two commits have no history in common, or not the one
	// asked for.
	ErrUnrelated = errors.New("the commits are not related")
	// ErrShallow says that the answer lies in commits that a shallow fetch left out.
	ErrShallow = errors.New("the history was fetched only in part")
)

// Contains tells whether the tip's history holds the commit, or is it.
func (r *Repository) Contains(tip, commit object.ID) (bool, error) {
	w, err := r.meet(commit, tip)
	if err != nil {
		return false, fmt.Errorf("look for %s below %s: %w", commit, tip, err)
	}
	contains := w.seen[commit].sides&second != 0
	if !contains && w.cut != nil {
		return false, fmt.Errorf("look for %s below %s: %w", commit, tip, w.cut)
	}
	return contains, nil
}

// MergeBase is the best commit that both histories hold, or ErrUnrelated. Of several
// that are equally good it is the newest.
func (r *Repository) MergeBase(a, b object.ID) (object.ID, error) {
	w, err := r.meet(a, b)
	if err != nil {
		return object.ID{}, fmt.Errorf("find what %s and %s have in common: %w", a, b, err)
	}
	for _, base := range w.bases {
		best := true
		for _, other := range w.bases {
			if other == base || !best {
				continue
			}
			below, err := r.Contains(other, base)
			if err != nil {
				return object.ID{}, err
			}
			best = !below
		}
		if best {
			return base, nil
		}
	}
	return object.ID{}, fmt.Errorf("find what %s and %s have in common: %w", a, b, cmp.Or(w.cut, ErrUnrelated))
}

// cutOff is the error of a commit's parent that is not there, as one that a shallow fetch
// left out if that may be so.
func (r *Repository) cutOff(err error) error {
	if errors.Is(err, ErrMissing) && exists(filepath.Join(r.dir, "shallow")) {
		return fmt.Errorf("%w: %w", ErrShallow, err)
	}
	return err
}

// Own is what a tip has on top of a base: its first parents down to the base, the
// oldest first, without the base. The zero base is the history's begin. If the base
// is not among the first parents, the error is ErrUnrelated.
func (r *Repository) Own(base, tip object.ID) ([]object.ID, error) {
	var own []object.ID
	for at := tip; at != base; {
		own = append(own, at)
		parents, err := r.Parents(at)
		if err != nil && len(own) > 1 {
			err = r.cutOff(err)
		}
		if err != nil {
			return nil, err
		}
		if len(parents) == 0 {
			if base.IsZero() {
				break
			}
			return nil, fmt.Errorf("walk from %s to %s: %w", tip, base, ErrUnrelated)
		}
		at = parents[0]
	}
	slices.Reverse(own)
	return own, nil
}
