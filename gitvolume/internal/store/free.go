package store

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"liken.sh/csicommon/usage"
	"liken.sh/gitvolume/internal/policy"
)

// ErrFull is wrapped when the store has too little room for another volume.
var ErrFull = errors.New("the store is full")

// Free is how much of the store's file system has to be free for new volumes: the less
// of two where both are given, since 5 % of a large disk and 1 GiB of a small one are
// each more than anybody would leave unused. The zero Free asks for nothing.
type Free struct {
	Bytes   int64   // 0: not given.
	Percent float64 // Of the file system's size; 0: not given.
}

// DefaultFree is 5 % or 1 GiB.
func DefaultFree() Free { return Free{Bytes: 1 << 30, Percent: 5} }

// ParseFree reads the value of --min-free: a quantity such as 1Gi, a part of the disk
// such as 5%, or both with a comma between them. 0, 0% and 0Gi ask for nothing, also beside
// something else: the less counts.
func ParseFree(text string) (Free, error) {
	var written freeText
	for part := range strings.SplitSeq(text, ",") {
		if err := written.read(part); err != nil {
			return Free{}, fmt.Errorf("%.60q: %w: write a quantity as 1Gi, a part of the disk as 5%%, both as 5%%,1Gi (the less counts), or 0", text, err)
		}
	}
	return written.free(), nil
}

// freeText is a Free as it is written, in which 0 is something else than nothing.
type freeText struct {
	bytes   *int64
	percent *float64
}

func (f *freeText) read(part string) error {
	if number, isPercent := strings.CutSuffix(part, "%"); isPercent {
		percent, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil, strings.Trim(number, "0123456789.") != "", percent >= 100:
			return fmt.Errorf("%.60q is no part from 0%% to less than 100%%", part)
		case f.percent != nil:
			return errors.New("there are two parts of the disk")
		}
		f.percent = &percent
		return nil
	}
	size, err := policy.ParseSize(part)
	switch {
	case err != nil:
		return err
	case f.bytes != nil:
		return errors.New("there are two quantities")
	}
	f.bytes = &size
	return nil
}

func (f *freeText) free() (free Free) {
	if f.bytes != nil {
		free.Bytes = *f.bytes
	}
	if f.percent != nil {
		free.Percent = *f.percent
	}
	if f.bytes != nil && *f.bytes == 0 || f.percent != nil && *f.percent == 0 {
		return Free{}
	}
	return free
}

// String is the value as ParseFree reads it.
func (f Free) String() string {
	var parts []string
	if f.Percent != 0 {
		parts = append(parts, strconv.FormatFloat(f.Percent, 'f', -1, 64)+"%")
	}
	if f.Bytes != 0 {
		parts = append(parts, strconv.FormatInt(f.Bytes, 10))
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ",")
}

// of is how many bytes that is on a file system of that size.
func (f Free) of(size int64) int64 {
	share := int64(math.MaxInt64)
	if f.Percent != 0 {
		share = int64(float64(size) / 100 * f.Percent)
	}
	switch {
	case f.Bytes != 0:
		return min(f.Bytes, share)
	case f.Percent != 0:
		return share
	}
	return 0
}

// Space is that of the store's file system. It may hang as long as the disk does.
func (s *Store) Space() (usage.Space, error) { return usage.SpaceOf(s.dir.Dir()) }

// CheckFree returns nil when there is room for another volume. The error wraps ErrFull,
// and has the same words as long as the disk has the same size.
func (s *Store) CheckFree() error {
	space, err := s.Space()
	if err != nil {
		return err
	}
	least := s.settings.MinFree.of(space.Bytes)
	if space.AvailableBytes >= least {
		return nil
	}
	return fmt.Errorf("%q has less than %d bytes available, which are kept free (--min-free %s): make room on its disk, or lower --min-free: %w",
		s.dir.Path(), least, s.settings.MinFree, ErrFull)
}
