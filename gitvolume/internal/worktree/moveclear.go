package worktree

import (
	"context"
	"fmt"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
)

// Clear clears away what an interrupted move left unfinished, for a move that cannot be
// resumed since one of its trees is lost. Nothing else of the tree is touched. known are
// the paths in which the trees of the Intent differed, as far as that can still be told:
// what the tree held, and what it was to hold. What none of that explains may be the
// application's: it is put back in its place, or kept beside that, and kept are the paths.
// It may be called again after an error.
func (m *Mover) Clear(ctx context.Context, intent Intent, known []history.Difference) (kept []string, err error) {
	mv, err := m.over(ctx, intent, known)
	if err != nil {
		return nil, fmt.Errorf("clear away an unfinished move: %w", err)
	}
	defer func() { mv.cursor.Close() }()
	if err := mv.sweep((*sweep).clearLost); err != nil {
		return nil, fmt.Errorf("clear away an unfinished move: %w", err)
	}
	if err := mv.syncTouched(); err != nil {
		return nil, fmt.Errorf("clear away an unfinished move: %w", err)
	}
	return mv.moved.Late, nil
}

// clearLost is clear where the commit after is not known for sure. As long as what the
// commit before has stands at its name, nothing came out there: what is beside it is its
// successor.
func (s *sweep) clearLost(path, name string) error {
	here := s.here(path, name)
	if here == nil || here.from.Mode == 0 {
		return s.clear(path, name)
	}
	_, err := s.cursor.Here().Stat(here.name)
	if descent.Vanished(err) {
		return s.clear(path, name)
	}
	if err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	stands, err := s.isSide(here, here.name, fromSide)
	if err != nil {
		return err
	}
	if !stands {
		return s.clear(path, name)
	}
	s.touched[path] = true
	return removeOwn(s.ctx, s.cursor, name)
}
