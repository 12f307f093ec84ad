package history

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
)

// flushAt is how many bytes of pending objects, deflated, are written without being
// asked to: it bounds the memory of a large batch.
const flushAt = 16 << 20

// reopenAfter is after how many packs the repository is opened again: libgit2 keeps
// each pack it has read open, also those that a repack has deleted since.
const reopenAfter = 64

// Flush makes all pending objects durable, as one pack: when it returns, the pack, its
// index and their directory are synced. On an error the objects stay pending.
func (r *Repository) Flush() error {
	if len(r.pending.objects) == 0 {
		return nil
	}
	if err := r.writePack(); err != nil {
		return fmt.Errorf("write a pack: %w", err)
	}
	r.pending.reset()
	if r.flushed++; r.flushed >= reopenAfter {
		return r.reopen()
	}
	if err := r.odb.Refresh(); err != nil {
		return fmt.Errorf("find the new pack: %w", err)
	}
	return r.known.update()
}

// writePack writes the pending pack and its index. The pack is in place before the
// index, by which git finds it; what a crash leaves is a temporary file, or a pack
// that nobody sees.
func (r *Repository) writePack() error {
	sum := r.pending.close()
	defer r.pending.reopen()
	dir := filepath.Join(r.dir, "objects", "pack")
	pack, err := write(dir, r.pending.pack, 0o444)
	if err != nil {
		return err
	}
	index, err := write(dir, packIndex(r.pending.objects, sum), 0o444)
	if err != nil {
		return errors.Join(err, discard(pack))
	}
	// Together they cost one commit of the file system's journal.
	synced := make(chan error, 1)
	go func() { synced <- index.Sync() }()
	if err := errors.Join(pack.Sync(), <-synced); err != nil {
		return errors.Join(fmt.Errorf("sync the pack: %w", err), discard(pack), discard(index))
	}
	name := filepath.Join(dir, "pack-"+hex.EncodeToString(sum[:]))
	if err := rename(pack, name+".pack"); err != nil {
		return errors.Join(err, discard(index))
	}
	if err := rename(index, name+".idx"); err != nil {
		return err
	}
	return syncDir(dir)
}
