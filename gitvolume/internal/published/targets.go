package published

import (
	"fmt"
	"slices"

	"liken.sh/gitvolume/internal/store"
)

func withTarget(all []store.Target, one store.Target) []store.Target {
	return append(withoutTarget(all, one.Path), one)
}

func withoutTarget(all []store.Target, path string) []store.Target {
	return slices.DeleteFunc(slices.Clone(all), func(t store.Target) bool { return t.Path == path })
}

func hasTarget(r store.Record, path string) bool {
	return slices.ContainsFunc(r.Targets, func(t store.Target) bool { return t.Path == path })
}

// shownAt is the first target of a record, but the canonical one of that path, at which
// something of the store is mounted; nil: there is none. With an error it is the target of
// which that cannot be told.
func (v *Volumes) shownAt(r store.Record, but string) (*store.Target, error) {
	for _, t := range r.Targets {
		if t.Path == but {
			continue
		}
		if ours, err := v.targets.ShowsStore(t.Path); ours || err != nil {
			return &t, err
		}
	}
	return nil, nil
}

// checkUnheld returns ErrHeld while a pod has the tree of a record at another target than the
// canonical one of that path; empty: at any. It names the pod.
func (v *Volumes) checkUnheld(r store.Record, but string) error {
	t, err := v.shownAt(r, but)
	switch {
	case err != nil:
		return fmt.Errorf("%w: whether pod %s/%s still has it cannot be told: %w", ErrHeld, t.Pod.Namespace, t.Pod.Name, err)
	case t != nil:
		return fmt.Errorf("%w: pod %s/%s has it at %q", ErrHeld, t.Pod.Namespace, t.Pod.Name, t.Path)
	}
	return nil
}
