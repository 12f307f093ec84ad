package history

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/errortext"
)

// flushAt is how many bytes of pending objects, deflated, are written without being
// asked to: it bounds the memory of a large batch.
const flushAt = 16 << 20

// reopenAfter is after how many packs the repository is opened again: each pack that was
// read is kept open, by libgit2 and for its deltas, also one that a repack has deleted
// since. A node has many volumes, and a process that may open few files has to do.
const reopenAfter = 16

// Flush makes all pending objects durable, as one pack: when it returns, the pack, its
// index and their directory are synced. Objects that could not be written, as on a full
// disk, stay pending, and the next Flush tries again.
func (r *Repository) Flush() error {
	if len(r.pending.objects) == 0 {
		return nil
	}
	if err := r.writePack(); err != nil {
		return fmt.Errorf("write a pack: %w", err)
	}
	r.pending.reset()
	return r.added()
}

// added takes up a pack that was written.
func (r *Repository) added() error {
	if r.flushed++; r.flushed >= reopenAfter {
		return r.reopen()
	}
	return r.refresh()
}

// refresh has libgit2 look for packs that are new.
func (r *Repository) refresh() error {
	if err := r.odb.Refresh(); err != nil {
		return fmt.Errorf("find the new packs: %w", err)
	}
	return nil
}

// writePack writes the pending pack and its index.
func (r *Repository) writePack() error {
	sum := r.pending.close()
	defer r.pending.reopen()
	pack, err := write(r.packDir(), r.pending.pack, 0o444)
	if err != nil {
		return err
	}
	return r.placePack(pack, packIndex(r.pending.objects, sum))
}

// placePack puts a pack, which is a temporary file and complete, in place durably with
// its index. The pack is in place before the index, by which git finds it; what a crash
// leaves is a temporary file, or a pack that nobody sees.
func (r *Repository) placePack(pack *os.File, content []byte) error {
	index, err := write(r.packDir(), content, 0o444)
	if err != nil {
		return errors.Join(err, discard(pack))
	}
	// Together they cost one commit of the file system's journal.
	synced := make(chan error, 1)
	go func() { synced <- index.Sync() }()
	err = errors.Join(errortext.WithoutPath(pack.Sync()), errortext.WithoutPath(<-synced))
	if err != nil {
		return errors.Join(fmt.Errorf("sync the pack: %w", err), discard(pack), discard(index))
	}
	name := filepath.Join(r.packDir(), newPackName())
	if err := rename(pack, name+".pack"); err != nil {
		return errors.Join(err, discard(index))
	}
	if err := rename(index, name+".idx"); err != nil {
		return err
	}
	return durable.SyncDir(r.packDir())
}

// packDir is the directory of packs.
func (r *Repository) packDir() string { return filepath.Join(r.dir, "objects", "pack") }

// newPackName is a name that no pack had before. Git's own name follows from what is in
// a pack: one with the same objects as an older one would take its name, and be deleted
// by a gc that means the older one.
func newPackName() string {
	var name [sha1.Size]byte
	_, _ = rand.Read(name[:]) // It never fails.
	return "pack-" + hex.EncodeToString(name[:])
}
