package published

import "context"

// LookAtTargets is what Run does each minute.
func (v *Volumes) LookAtTargets(ctx context.Context) { v.lookAtTargets(ctx) }

// DropGone is what Run does at its start.
func (v *Volumes) DropGone(ctx context.Context) { v.dropGone(ctx) }
