package history

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	git "github.com/libgit2/git2go/v34"
	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
)

// Bounds of what an object is stored as: a small one can be a delta of a huge one, and
// libgit2 has each whole in memory. Up to maxBase bases are read for any object.
const (
	maxBase  = 64 << 20
	maxChain = 4096 // Deltas of deltas; git itself makes at most 4,095.
	// mostOpen is how many packs are kept open, as long as there are others to read from.
	// libgit2 keeps all that it has read from open, and a process may have few descriptors.
	mostOpen = 8
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

// chains tells where in the packs an object is, and what reading it would take. It keeps
// the packs' indexes mapped and some of the packs it has read from open, until they are
// deleted or it is closed: to open them for each object would take most of the time of a rebase.
type chains struct {
	dir   string // Of packs.
	packs map[string]*packChains
	read  unix.Timespec // When the directory was last changed, as it was read.
	// changed is called when the packs were read anew.
	changed func() error
}

// packChains is what is remembered of a pack.
type packChains struct {
	path    string
	ids     idIndex
	file    *os.File        // Nil until it was read from.
	largest map[int64]int64 // By the offset of an entry, see largest.
}

// takes is how many bytes the largest thing has that is in memory to read an object from
// a pack; packed tells whether one has it. Above the bound for any object, or with more
// deltas than that, the error is ErrTooLarge.
func (c *chains) takes(id object.ID, limit uint64) (size uint64, packed bool, err error) {
	if err := c.update(); err != nil {
		return 0, false, err
	}
	limit = max(limit, maxBase)
	for _, pack := range c.packs {
		offset, ok := pack.ids.offset(id)
		if !ok {
			continue
		}
		if _, known := pack.largest[offset]; !known {
			c.makeRoom(pack)
		}
		// A pack that cannot be read is not the one that libgit2 reads from.
		most, err := pack.chain(offset)
		if errors.Is(err, errChain) || err == nil && uint64(most) > limit {
			return 0, false, fmt.Errorf("read %s, which takes %d bytes: %w", id, most, ErrTooLarge)
		}
		if err == nil {
			size, packed = max(size, uint64(most)), true
		}
	}
	return size, packed, nil
}

// update takes up the packs that came and drops those that went.
func (c *chains) update() error {
	var stat unix.Stat_t
	err := unix.Stat(c.dir, &stat)
	if errors.Is(err, unix.ENOENT) {
		// git makes the directory, and history.Create: somebody has removed it.
		err = fmt.Errorf("%w: there is no directory for them", ErrMissing)
	}
	if err != nil {
		return fmt.Errorf("look at the packs: %w", err)
	}
	if c.packs != nil && stat.Mtim == c.read {
		return nil
	}
	indexes, err := listSuffix(c.dir, ".idx")
	if err != nil {
		return err
	}
	before := c.packs
	c.packs, c.read = make(map[string]*packChains, len(indexes)), stat.Mtim
	for _, index := range indexes {
		pack := before[index]
		if pack == nil {
			pack = &packChains{
				path: strings.TrimSuffix(index, ".idx") + ".pack",
				ids:  openIDs(index), largest: map[int64]int64{},
			}
		}
		c.packs[index] = pack
		delete(before, index)
	}
	for _, gone := range before {
		gone.close()
	}
	return c.changed()
}

// makeRoom closes packs, if too many are open for another one.
func (c *chains) makeRoom(pack *packChains) {
	open := 0
	for _, other := range c.packs {
		if other.file != nil {
			open++
		}
	}
	if pack.file != nil || open < mostOpen {
		return
	}
	for _, other := range c.packs {
		other.closeFile()
	}
}

// close lets go of all packs; they are taken up again when they are asked for.
func (c *chains) close() {
	for _, pack := range c.packs {
		pack.close()
	}
	c.packs = nil
}

func (p *packChains) close() {
	p.ids.close()
	p.closeFile()
}

func (p *packChains) closeFile() {
	if p.file != nil {
		_ = p.file.Close() // It was only read.
		p.file = nil
	}
}

// open opens the pack, if it is not.
func (p *packChains) open() error {
	if p.file != nil {
		return nil
	}
	file, err := os.Open(p.path)
	if err != nil {
		return fmt.Errorf("open a pack: %w", err)
	}
	p.file = file
	return nil
}

// chain is the size of the largest thing that is in memory to read the entry at an
// offset: it, the deltas it is made of, what they lead through, and what they begin at.
func (p *packChains) chain(offset int64) (int64, error) {
	if known, ok := p.largest[offset]; ok {
		return known, nil
	}
	if err := p.open(); err != nil {
		return 0, err
	}
	var way []entry
	below := int64(0)
	for at := offset; at > 0; {
		known, ok := p.largest[at]
		if ok {
			below = known
			break
		}
		e, err := readEntry(p.file, at)
		if err != nil {
			return 0, err
		}
		if way = append(way, e); len(way) > maxChain {
			return 0, errChain
		}
		at = e.base
		if e.byID {
			at, _ = p.ids.offset(e.baseID)
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
	var head [16]byte // More than a kind and a size have.
	n, err := pack.ReadAt(head[:], at)
	if n == 0 {
		return e, fmt.Errorf("read an entry: %w", err)
	}
	begin := bytes.NewReader(head[:n])
	kind, size, err := readEntryHeader(begin)
	if err != nil {
		return e, fmt.Errorf("read an entry: %w", err)
	}
	e.size = size
	if kind != offsetDelta && kind != namedDelta {
		return e, nil
	}
	return e, e.readDelta(pack, kind, at+int64(n-begin.Len()))
}

// readDelta reads what a delta is of, and the sizes that it tells, from where they begin.
func (e *entry) readDelta(pack *os.File, kind git.ObjectType, at int64) error {
	from := bufio.NewReaderSize(io.NewSectionReader(pack, at, math.MaxInt64-at), 512)
	switch kind {
	case offsetDelta:
		back, err := readBack(from)
		if err != nil || back <= 0 || back >= e.at {
			return fmt.Errorf("read where a delta's base is: %w", errors.Join(ErrDamaged, err))
		}
		e.base = e.at - back
	default:
		e.byID = true
		if _, err := io.ReadFull(from, e.baseID[:]); err != nil {
			return fmt.Errorf("read what a delta's base is: %w", err)
		}
	}
	inflate, err := zlib.NewReader(from)
	if err != nil {
		return fmt.Errorf("inflate a delta: %w", err)
	}
	sizes := bufio.NewReaderSize(inflate, 16)
	for range 2 { // Of the base, and of the result.
		size, err := binary.ReadUvarint(sizes)
		if err != nil {
			return fmt.Errorf("read a delta: %w", err)
		}
		e.size = max(e.size, int64(min(size, math.MaxInt64)))
	}
	return nil
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
