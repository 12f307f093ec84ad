package nodevolume

import (
	"errors"

	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/worktree"
)

// keeper keeps in the store what the state machine needs to outlive the process.
type keeper struct{ volume *Volume }

// Keep implements writeable.Keeper.
func (k keeper) Keep(p store.Position) error {
	return k.volume.save(func(r *store.Record) { r.Position = p })
}

// KeepMemory implements writeable.Keeper.
func (k keeper) KeepMemory(of store.Remembered, m *worktree.Memory) error {
	return k.volume.Store.SaveMemory(k.volume.handle(), of, m)
}

// Memory implements writeable.Keeper.
func (k keeper) Memory() (store.Remembered, *worktree.Memory) {
	of, memory, err := k.volume.Store.LoadMemory(k.volume.handle())
	if err != nil {
		if !errors.Is(err, store.ErrNoMemory) {
			k.volume.Log.Warn("the tree is read as a whole", "error", err)
		}
		return store.Remembered{}, nil
	}
	return of, memory
}

// Native implements writeable.Keeper.
func (k keeper) Native() (done func()) { return k.volume.Store.Mark(k.volume.handle()) }
