package inspect

import (
	"context"

	"liken.sh/csicommon/usage"
)

// Figures are those of a node's store, for its metrics.
type Figures struct {
	// Counted is true when the copies were listed; Copies, Held and Bytes are
	// worth nothing before.
	Counted bool
	Copies  int
	Held    int              // Copies that a mount of this node shows.
	Bytes   map[string]int64 // Of each copy that was measured.
	// Sized is true when Space is known.
	Sized bool
	Space usage.Space
}

// Figures brings up to date what was published or unpublished since the last look
// and gives what is known then. It waits for a disk that does not answer no longer
// than a second; what is on it counts as it last did.
func (i *Inspector) Figures(ctx context.Context) Figures {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	size := i.size()
	for volume := range i.takeTouched() {
		await(ctx, i.look(volume))
	}
	await(ctx, i.listed)
	await(ctx, size)

	i.mu.Lock()
	defer i.mu.Unlock()
	f := Figures{Counted: i.isListed(), Sized: i.sized, Space: i.space, Bytes: make(map[string]int64)}
	for volume, s := range i.subjects {
		if s.held {
			f.Held++
		}
		if !s.exists {
			continue
		}
		f.Copies++
		if u, _, known := i.meter.Last(volume); known {
			f.Bytes[volume] = u.Bytes
		}
	}
	return f
}

// size asks for the space of the store's file system; nil when that is known not
// to answer.
func (i *Inspector) size() <-chan struct{} {
	if i.sizing.silent() > patience {
		return nil
	}
	return i.sizing.ask(func() {
		space, err := i.config.Store.Space()
		i.tell("its space cannot be read", err)
		if err != nil {
			return
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.space, i.sized = space, true
	})
}

func (i *Inspector) takeTouched() map[string]bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	touched := i.touched
	i.touched = make(map[string]bool)
	return touched
}
