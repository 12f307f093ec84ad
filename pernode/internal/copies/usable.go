package copies

import (
	"context"
	"fmt"
)

// Usable returns nil while the copies that exist can be served. A full or
// read-only disk is usable: a plugin that was ended for it could not even take
// pods off it. The error wraps ErrStore.
func (s *Store) Usable(ctx context.Context) error {
	return ofStore(s.dir.Usable(ctx, copiesDir, holdsDir))
}

// Writable returns nil when new copies can be made too. The error wraps ErrStore.
func (s *Store) Writable(ctx context.Context) error { return ofStore(s.dir.Writable(ctx)) }

func ofStore(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}
