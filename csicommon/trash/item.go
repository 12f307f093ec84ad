package trash

import (
	"errors"
	"log/slog"
	"time"

	"liken.sh/csicommon/descent"
)

const (
	// soonest and latest bound the delay before a failed item is tried again.
	soonest = 5 * time.Second
	latest  = 10 * time.Minute
	// told is how many different failures of one item are logged, so that a
	// million immutable files do not make a million lines.
	told = 16
)

// item is one entry of the bin. Only Run's goroutine reads what is below moving.
type item struct {
	entry  string
	moving bool // Put is not done with it; guarded by the bin's mu.

	name   string // What was put.
	made   time.Time
	bytes  int64
	inodes int64

	delay time.Duration
	due   time.Time
	told  map[string]bool
}

// identify finds out what the item was, as long as it is there.
func (i *item) identify(bin *descent.Directory) error {
	if i.name != "" {
		return nil
	}
	dir, name, err := i.find(bin)
	if err != nil || name == "" {
		return err
	}
	stat, err := dir.Stat(name)
	if dir != bin {
		err = errors.Join(err, dir.Close())
	}
	if descent.Vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	i.name, i.made = original(name), stat.Made
	return nil
}

// find gives the directory that the item is in, opened unless it is the bin, and
// its name there; no name when there is nothing.
func (i *item) find(bin *descent.Directory) (*descent.Directory, string, error) {
	if !isWrapper(i.entry) {
		return bin, i.entry, nil
	}
	wrapper, err := bin.Enter(i.entry)
	if err != nil {
		return nil, "", nil //nolint:nilerr // What is wrong with it, deleting it meets and reports.
	}
	name, err := wrapper.Next()
	if errors.Is(err, descent.ErrEnd) {
		err = nil // Killed before something came into it, or after it was deleted.
	}
	if err != nil || name == "" {
		return nil, "", errors.Join(err, wrapper.Close())
	}
	return wrapper, name, nil
}

// freed counts what was deleted. Blocks are freed with the last name of an
// inode, so that hard links count once and those from elsewhere not at all.
func (i *item) freed(stat descent.Stat) {
	if stat.Directory || stat.Links <= 1 {
		i.bytes += stat.Bytes
		i.inodes++
	}
}

// failed sets when the item is tried again and logs what is new about the
// failures.
func (i *item) failed(log *slog.Logger, failures *failures) {
	i.delay = min(max(soonest, 2*i.delay), latest)
	i.due = time.Now().Add(i.delay)
	if i.told == nil {
		i.told = map[string]bool{}
	}
	for _, failure := range failures.first {
		text := failure.Error()
		if i.told[text] || len(i.told) >= told {
			continue
		}
		i.told[text] = true
		log.Warn("cannot delete all of a removed directory, trying again later",
			"volume", i.title(), "error", failure, "remaining", failures.count)
	}
}

func (i *item) title() string {
	if i.name == "" {
		return i.entry
	}
	return i.name
}

// failures are those of one pass over an item.
type failures struct {
	first []error // At most told.
	count int
}

func (f *failures) add(err error) {
	f.count++
	if len(f.first) < told {
		f.first = append(f.first, err)
	}
}
