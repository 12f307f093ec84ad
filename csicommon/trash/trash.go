// Package trash is where a removed directory goes: it is renamed into the
// bin at once and deleted in the background, also after a restart.
//
// What is in the bin was written by a hostile application, which may still
// have it open. Deleting must NEVER follow a link, never cross a mount and
// never touch anything outside the bin, never need more memory for a deeper tree
// than for the bound below (see deepest), and a directory that cannot be deleted
// must never keep the others from it.
package trash

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Config is what a Bin needs.
type Config struct {
	// Dir is the bin: an opened directory that is used for nothing else, on the
	// same mount as what is put into it. It stays the caller's, who may close it
	// after Open. It is no path, because a path that has become a link would have
	// everything deleted that the link leads to.
	Dir *os.File
	Log *slog.Logger
	// Keep is how long an item lies in the bin before it is deleted, also over restarts,
	// so that somebody can take it out again; 0: it is deleted at once. After a restart
	// the new Keep counts, for what was put before too.
	Keep time.Duration
	// Removed, if set, is called by Run's goroutine for each item that is
	// wholly deleted. It may be missed for an item when the process is killed.
	Removed func(Removed)
}

// Removed is an item that was deleted.
type Removed struct {
	Name   string        // What it was called when it was put.
	Bytes  int64         // Allocated blocks that were freed, each inode once.
	Inodes int64         // Inodes that were freed.
	Age    time.Duration // Since it was made: its birth where that is recorded, else its last change.
	// Bytes and Inodes leave out what an earlier process had deleted already.
}

// Bin is the trash. All methods may be called at the same time.
type Bin struct {
	dir     *os.File
	log     *slog.Logger
	keep    time.Duration
	removed func(Removed)
	wake    chan struct{}

	sync func(*os.File) error

	// placing is held from the making of a wrapper until its item is in it, so
	// that a scan does not take the wrapper for an empty one and remove it.
	placing sync.Mutex
	mu      sync.Mutex
	items   map[string]*item // By entry of the bin; guarded by mu.
}

// Open opens the bin and finds what an earlier process left in it.
func Open(config Config) (*Bin, error) {
	// Opened again, since a duplicate would share the reading position.
	dir, err := reopen(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the trash: %w", err)
	}
	b := &Bin{
		dir:     dir,
		log:     config.Log,
		keep:    config.Keep,
		removed: config.Removed,
		wake:    make(chan struct{}, 1),
		sync:    syncDir,
		items:   map[string]*item{},
	}
	if err := b.scan(); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return b, nil
}

// Pending is how many items are in the bin, not deleted yet.
func (b *Bin) Pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}

// scan takes up what is in the bin and not known: what an earlier process
// left, or another one put there, as two do while a DaemonSet is updated.
func (b *Bin) scan() error {
	b.placing.Lock()
	defer b.placing.Unlock()
	if _, err := b.dir.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("rewind the trash: %w", err)
	}
	names, err := b.dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("read the trash: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if b.items[name] == nil {
			b.items[name] = b.newItem(name)
		}
	}
	return nil
}

// newItem is one of the bin that is kept for its time, from when it was put, as its name
// says. Of one that was put by hand that is not known, and it counts from now, and so it
// does where the clock was put back since: nothing is kept longer than that from a
// restart on.
func (b *Bin) newItem(entry string) *item {
	it := &item{entry: entry}
	if b.keep > 0 {
		now := time.Now()
		it.due = now.Add(b.keep)
		if put, ok := putAt(entry); ok && put.Before(now) {
			it.due = put.Add(b.keep)
		}
	}
	return it
}
