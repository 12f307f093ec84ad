package written

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

// Stop commits all of a tree that no application has any more, and pushes once, whose
// outcome does not matter. An error says that not all is committed, and that Stop has to
// be called again. It is also for a tree that was not followed since the driver began.
func (v *Volume) Stop(ctx context.Context) error {
	var err error
	if v.isFollowed.Load() {
		err = v.engine.Stop(ctx, v.node.settings.StopPush)
	} else {
		err = v.catchUp(ctx)
	}
	if err != nil {
		return fmt.Errorf("stop volume %q: %w", v.handle, err)
	}
	v.isFollowed.Store(false)
	return nil
}

// catchUp is Stop for a tree that a process before this one followed last.
func (v *Volume) catchUp(ctx context.Context) error {
	if err := v.Keep(ctx); err != nil {
		return err
	}
	return v.linger(ctx)
}

// Keep commits a tree that nobody has, as a crash may have left it, under the class that
// its record names. What can never be committed, or not for a while, is no error.
func (v *Volume) Keep(ctx context.Context) error {
	err := v.engine.Keep(ctx)
	if errors.Is(err, nodevolume.ErrUnfollowed) || writeable.IsFinal(err) {
		v.log.Error("what was written last is not committed", "error", err)
		return nil
	}
	return err
}

// Unstage records that the volume is not staged, and tries once more to push. What the
// remote lacks then is said, and pushed later if Lingers.
func (v *Volume) Unstage(ctx context.Context) error {
	if err := v.linger(ctx); err != nil {
		return fmt.Errorf("unstage volume %q: %w", v.handle, err)
	}
	return v.Save(func(r *store.Record) { r.Staged = false })
}

// End is Stop of a process that ends, while applications may have the tree. The push takes
// no longer than within.
func (v *Volume) End(ctx context.Context, within time.Duration) error {
	return v.engine.Stop(ctx, within)
}

// linger pushes what waits. That it cannot even be tried keeps nobody: the tree stays.
func (v *Volume) linger(ctx context.Context) error {
	within := v.node.settings.StopPush
	if !v.access.HasCredential() {
		within = 0 // There is nothing to wait for.
	}
	err := v.engine.Linger(ctx, within)
	if err != nil && ctx.Err() == nil {
		v.log.Error("what was committed cannot be pushed now", "error", err)
		return nil
	}
	return err
}

// Lingers tells whether pushes go on of what nobody has any more.
func (v *Volume) Lingers() bool {
	return !v.isFollowed.Load() && v.access.HasCredential() && v.Record().Position.Owes()
}
