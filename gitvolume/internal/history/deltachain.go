package history

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// Bounds of what an object is stored as: a small one can be a delta of a huge one, and
// libgit2 has each whole in memory. Up to maxBase bases are read for any object.
const (
	maxBase  = 64 << 20
	maxChain = 4096 // Deltas of deltas; git itself makes at most 4,095.
	// cachedChains bounds the entries that are remembered of one pack.
	cachedChains = 1 << 16
)

// Kinds of entries that are deltas: of what stands at an offset, or has an id.
const (
	offsetDelta git.ObjectType = 6
	namedDelta  git.ObjectType = 7
)

// errChain says that a chain of deltas is longer than the bound.
var errChain = errors.New("it is a delta of too many others")

// chains tells what reading an object from the packs would take. It holds no files open.
type chains struct {
	dir   string // Of packs.
	packs map[string]*packChains
	read  time.Time // When the directory was last changed, as it was read.
}

// packChains is what is remembered of a pack.
type packChains struct {
	path    string
	first   [256]bool       // Whether an id starts with this byte.
	largest map[int64]int64 // By the offset of an entry, see largest.
}

// check refuses an object which takes that something above the limit is in memory.
func (c *chains) check(id object.ID, limit uint64) error {
	if err := c.update(); err != nil {
		return err
	}
	limit = max(limit, maxBase)
	for index, pack := range c.packs {
		if !pack.first[id[0]] {
			continue
		}
		// A pack that cannot be read is not the one that libgit2 reads from.
		offset, ok := findInIndex(index, id)
		if !ok {
			continue
		}
		size, err := pack.chain(index, offset)
		if errors.Is(err, errChain) || err == nil && uint64(size) > limit {
			return fmt.Errorf("read %s, which takes %d bytes: %w", id, size, ErrTooLarge)
		}
	}
	return nil
}

// update takes up the packs that came and drops those that went.
func (c *chains) update() error {
	info, err := os.Stat(c.dir)
	if err != nil {
		return fmt.Errorf("look at the packs: %w", err)
	}
	if c.packs != nil && info.ModTime().Equal(c.read) {
		return nil
	}
	indexes, err := listSuffix(c.dir, ".idx")
	if err != nil {
		return err
	}
	before := c.packs
	c.packs, c.read = map[string]*packChains{}, info.ModTime()
	for _, index := range indexes {
		if before[index] != nil {
			c.packs[index] = before[index]
		} else if pack := openChains(index); pack != nil {
			c.packs[index] = pack
		}
	}
	return nil
}

// openChains looks at a pack's index; nil if it cannot be read.
func openChains(index string) *packChains {
	file, err := os.Open(index)
	if err != nil {
		return nil
	}
	defer file.Close()
	var fan [256 * 4]byte
	if _, err := file.ReadAt(fan[:], int64(len(indexMagic))); err != nil {
		return nil
	}
	pack := &packChains{path: strings.TrimSuffix(index, filepath.Ext(index)) + ".pack", largest: map[int64]int64{}}
	last := uint32(0)
	for i := range pack.first {
		upTo := binary.BigEndian.Uint32(fan[4*i:])
		pack.first[i], last = upTo != last, upTo
	}
	return pack
}

// chain is the size of the largest thing that is in memory to read the entry at an
// offset: it, the deltas it is made of, what they lead through, and what they begin at.
func (p *packChains) chain(index string, offset int64) (int64, error) {
	if known, ok := p.largest[offset]; ok {
		return known, nil
	}
	file, err := os.Open(p.path)
	if err != nil {
		return 0, fmt.Errorf("open a pack: %w", err)
	}
	defer file.Close()
	var way []entry
	below := int64(0)
	for at := offset; at > 0; {
		known, ok := p.largest[at]
		if ok {
			below = known
			break
		}
		e, err := readEntry(file, at)
		if err != nil {
			return 0, err
		}
		if way = append(way, e); len(way) > maxChain {
			return 0, errChain
		}
		at = e.base
		if e.byID {
			at, _ = findInIndex(index, e.baseID)
		}
	}
	if len(p.largest)+len(way) > cachedChains {
		clear(p.largest)
	}
	for i := len(way) - 1; i >= 0; i-- {
		below = max(below, way[i].size)
		p.largest[way[i].at] = below
	}
	return below, nil
}

// entry is where something stands in a pack, and what it is a delta of.
type entry struct {
	at     int64
	size   int64 // The largest that it is, or says of its base and its result.
	base   int64 // Where the base stands; 0 if there is none, or it is named.
	byID   bool
	baseID object.ID
}

// readEntry reads how an entry begins.
func readEntry(pack *os.File, at int64) (entry, error) {
	e := entry{at: at}
	from := bufio.NewReaderSize(io.NewSectionReader(pack, at, math.MaxInt64-at), 512)
	kind, size, err := readEntryHeader(from)
	if err != nil {
		return e, fmt.Errorf("read an entry: %w", err)
	}
	e.size = size
	switch kind {
	case offsetDelta:
		back, err := readBack(from)
		if err != nil || back <= 0 || back >= at {
			return e, fmt.Errorf("read where a delta's base is: %w", errors.Join(ErrDamaged, err))
		}
		e.base = at - back
	case namedDelta:
		e.byID = true
		if _, err := io.ReadFull(from, e.baseID[:]); err != nil {
			return e, fmt.Errorf("read what a delta's base is: %w", err)
		}
	default:
		return e, nil
	}
	inflate, err := zlib.NewReader(from)
	if err != nil {
		return e, fmt.Errorf("inflate a delta: %w", err)
	}
	sizes := bufio.NewReaderSize(inflate, 16)
	for range 2 { // Of the base, and of the result.
		size, err := binary.ReadUvarint(sizes)
		if err != nil {
			return e, fmt.Errorf("read a delta: %w", err)
		}
		e.size = max(e.size, int64(min(size, math.MaxInt64)))
	}
	return e, nil
}

// readBack reads how far before a delta its base is: seven bits a byte, the first ones
// first, of which each that goes on stands for one more.
func readBack(from io.ByteReader) (int64, error) {
	b, err := from.ReadByte()
	back := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 {
		if back > math.MaxInt64>>8 {
			return 0, errors.New("the offset of a base has too many bits")
		}
		b, err = from.ReadByte()
		back = (back+1)<<7 | int64(b&0x7f)
	}
	return back, err
}
