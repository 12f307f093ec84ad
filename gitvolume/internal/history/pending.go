package history

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// packHeader is the length of what stands before a pack's first entry: "PACK", its
// version and the number of entries, which is known only when it is closed.
const packHeader = 12

// pending holds the objects that are not durable yet, as the pack they will be: each
// is deflated once, when it is added, if at all. Deltas are not looked for, which costs
// more than they save before a repack looks for them anyway; see putTreeOver for those
// that are known.
type pending struct {
	pack    []byte
	objects map[object.ID]packed
	deflate *zlib.Writer
	store   *zlib.Writer // It deflates nothing.
}

// storedTree is the size from which a tree is not deflated: that of a directory of some
// 800 entries. It is written anew with every commit below it, of which deflating it would
// take most of the time, and a push or a repack makes a delta of it that is far smaller.
// Until then it takes two thirds more of the disk.
const storedTree = 32 << 10

// packed is an object in a pack that is being made.
type packed struct {
	kind   git.ObjectType
	size   int    // Of the object, inflated.
	offset int    // Of the entry in the pack.
	data   int    // Of the deflated bytes in the pack.
	end    int    // Of the entry.
	crc    uint32 // Over the entry, for the index.
	deltas int    // How many deltas it is made of, itself one of them.
}

// newPending is an empty pack.
func newPending() *pending {
	// The fastest level: what is committed is small and is deflated again by a
	// repack, and a directory's tree is mostly ids, which no level makes smaller.
	deflate, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil {
		panic(err) // The level is a constant.
	}
	store, err := zlib.NewWriterLevel(io.Discard, zlib.NoCompression)
	if err != nil {
		panic(err)
	}
	p := &pending{deflate: deflate, store: store}
	p.reset()
	return p
}

// reset forgets all objects. A buffer that a large batch has grown is given back.
func (p *pending) reset() {
	if cap(p.pack) > flushAt+flushAt/2 {
		p.pack = nil
	}
	p.pack = append(p.pack[:0], make([]byte, packHeader)...)
	p.objects = map[object.ID]packed{}
}

// Write appends to the pack; it is what the deflating writer writes to.
func (p *pending) Write(b []byte) (int, error) {
	p.pack = append(p.pack, b...)
	return len(b), nil
}

// add appends the object.
func (p *pending) add(id object.ID, kind git.ObjectType, content []byte) error {
	writer := p.deflate
	if kind == git.ObjectTree && len(content) >= storedTree {
		writer = p.store
	}
	added := packed{kind: kind, size: len(content), offset: len(p.pack)}
	p.pack = appendEntryHeader(p.pack, kind, len(content))
	return p.complete(id, added, writer, content)
}

// addDelta appends an object of that size as a delta of a pending one.
func (p *pending) addDelta(id object.ID, kind git.ObjectType, size int, base packed, delta []byte) error {
	added := packed{kind: kind, size: size, offset: len(p.pack), deltas: base.deltas + 1}
	p.pack = appendEntryHeader(p.pack, offsetDelta, len(delta))
	p.pack = appendBack(p.pack, added.offset-base.offset)
	return p.complete(id, added, p.deflate, delta)
}

// complete appends the content of an entry that was begun.
func (p *pending) complete(id object.ID, added packed, writer *zlib.Writer, content []byte) error {
	added.data = len(p.pack)
	writer.Reset(p)
	_, err := writer.Write(content)
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		p.pack = p.pack[:added.offset]
		return fmt.Errorf("deflate %s: %w", id, err)
	}
	added.end = len(p.pack)
	added.crc = crc32.ChecksumIEEE(p.pack[added.offset:])
	p.objects[id] = added
	return nil
}

// read inflates a pending object that is no delta.
func (p *pending) read(e packed) ([]byte, error) {
	inflate, err := zlib.NewReader(bytes.NewReader(p.pack[e.data:e.end]))
	if err != nil {
		return nil, fmt.Errorf("inflate a pending object: %w", err)
	}
	content := make([]byte, e.size)
	if _, err := io.ReadFull(inflate, content); err != nil {
		return nil, fmt.Errorf("inflate a pending object: %w", err)
	}
	return content, nil
}

// close completes the pack, which is then not to be added to, and gives its checksum.
func (p *pending) close() [sha1.Size]byte {
	copy(p.pack, "PACK")
	binary.BigEndian.PutUint32(p.pack[4:], 2)
	binary.BigEndian.PutUint32(p.pack[8:], uint32(len(p.objects)))
	sum := sha1.Sum(p.pack)
	p.pack = append(p.pack, sum[:]...)
	return sum
}

// reopen takes the checksum off again, so that a pack that could not be written is
// tried once more later, with what is added meanwhile.
func (p *pending) reopen() { p.pack = p.pack[:len(p.pack)-sha1.Size] }

// appendEntryHeader appends an entry's kind and inflated size: four bits of the size
// beside the kind, then seven bits a byte.
func appendEntryHeader(pack []byte, kind git.ObjectType, size int) []byte {
	b := byte(kind)<<4 | byte(size&0x0f)
	for size >>= 4; size > 0; size >>= 7 {
		pack = append(pack, b|0x80)
		b = byte(size & 0x7f)
	}
	return append(pack, b)
}

// appendBack appends how far before a delta its base is, as readBack reads it.
func appendBack(pack []byte, back int) []byte {
	reversed := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		reversed = append(reversed, byte(back&0x7f)|0x80)
	}
	slices.Reverse(reversed)
	return append(pack, reversed...)
}
