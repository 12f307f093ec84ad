package trash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

const (
	// look is how often the bin is read when nothing else happens.
	look = 10 * time.Minute
	// passes is how often an item is gone through in a row while that helps:
	// a file system may leave out names when a directory is changed while it
	// is read, and an application that still has the item open may add some.
	// After that it is the other items' turn.
	passes = 8
)

// Run deletes what is in the bin, one item at a time, until ctx ends. It is
// called once. What it leaves, the next Run deletes.
func (b *Bin) Run(ctx context.Context) {
	var broken string
	for ctx.Err() == nil {
		switch err := b.scan(); {
		case err == nil:
			broken = ""
		case err.Error() != broken:
			broken = err.Error()
			b.log.Error("cannot read the trash, trying again later", "error", err)
		}
		for _, it := range b.due() {
			if ctx.Err() != nil {
				return
			}
			b.attempt(ctx, it)
		}
		timer := time.NewTimer(b.wait())
		select {
		case <-ctx.Done():
		case <-b.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// due gives the items to try now, the oldest first.
func (b *Bin) due() []*item {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var due []*item
	for _, it := range b.items {
		if !it.moving && !it.due.After(now) {
			due = append(due, it)
		}
	}
	slices.SortFunc(due, func(x, y *item) int { return strings.Compare(x.entry, y.entry) })
	return due
}

func (b *Bin) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := look
	for _, it := range b.items {
		if !it.moving { // It wakes Run when it is not any more.
			wait = min(wait, time.Until(it.due))
		}
	}
	return wait
}

// attempt deletes an item as far as it can be.
func (b *Bin) attempt(ctx context.Context, it *item) {
	var pace descent.Pace
	for round := 1; ; round++ {
		pass := &pass{item: it, pace: &pace}
		err := b.pass(ctx, pass)
		if ctx.Err() != nil {
			return
		}
		if err == nil && pass.failures.count == 0 {
			b.forget(it)
			return
		}
		if err != nil {
			pass.failures.add(err)
		}
		switch pass.next(round) {
		case othersFirst:
			select {
			case b.wake <- struct{}{}:
			default: // Run is about to look anyway.
			}
			return
		case waitFirst:
			it.failed(b.log, &pass.failures)
			return
		}
	}
}

// pass goes through the item once. The entry is gone when it returns nil and
// noted no failure.
func (b *Bin) pass(ctx context.Context, pass *pass) error {
	bin, err := descent.Open(b.dir)
	if err != nil {
		return err
	}
	defer bin.Close()
	it := pass.item
	if err := it.identify(bin); err != nil {
		return fmt.Errorf("read %q: %w", it.entry, err)
	}
	enter, err := pass.Entry(ctx, bin, it.entry)
	if err == nil && enter {
		err = walk(ctx, bin, pass)
	}
	if err != nil || pass.failures.count > 0 {
		return err
	}
	return gone(bin, it.entry)
}

// walk deletes what is in the item's uppermost directory.
func walk(ctx context.Context, bin *descent.Directory, pass *pass) error {
	top, err := bin.Enter(pass.item.entry)
	if descent.Vanished(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", pass.item.entry, err)
	}
	// A handle of its own: the descent closes top while it is far below it.
	if pass.top, err = unix.FcntlInt(uintptr(top.Fd()), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return errors.Join(fmt.Errorf("hold %q: %w", pass.item.entry, err), top.Close())
	}
	defer unix.Close(pass.top)
	if err := descent.Walk(ctx, top, pass); err != nil || pass.failures.count > 0 {
		return err
	}
	return pass.Leave(bin, pass.item.entry)
}

// gone fails when there still is something in the bin that nothing is wrong
// with: it was filled meanwhile, or not wholly read.
func gone(bin *descent.Directory, entry string) error {
	_, err := bin.Stat(entry)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err == nil:
		err = unix.ENOTEMPTY
	}
	return fmt.Errorf("remove %q: %w", entry, err)
}

// forget drops an item that is wholly deleted and says so. An empty wrapper
// was no item.
func (b *Bin) forget(it *item) {
	b.mu.Lock()
	delete(b.items, it.entry)
	b.mu.Unlock()
	if it.name == "" {
		return
	}
	age := max(0, time.Since(it.made))
	b.log.Info("deleted from the trash", "volume", it.name, "bytes", it.bytes, "inodes", it.inodes, "age", age.Round(time.Second))
	if b.removed != nil {
		b.removed(Removed{Name: it.name, Bytes: it.bytes, Inodes: it.inodes, Age: age})
	}
}
