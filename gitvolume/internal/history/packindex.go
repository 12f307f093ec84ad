package history

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"maps"
	"slices"

	"liken.sh/gitvolume/internal/object"
)

// indexMagic is what an index of version 2 starts with.
const indexMagic = "\xfftOc\x00\x00\x00\x02"

// packIndex is the index, of version 2, of a pack with these entries and checksum.
// libgit2's own indexer is not used: it inflates and hashes everything once more, and
// puts the index in place before the pack, so that a crash leaves the one without the
// other.
func packIndex(objects map[object.ID]packed, pack [sha1.Size]byte) []byte {
	ids := slices.SortedFunc(maps.Keys(objects), func(a, b object.ID) int { return bytes.Compare(a[:], b[:]) })
	index := make([]byte, 0, 8+256*4+len(ids)*(object.IDSize+8)+2*sha1.Size)
	index = append(index, indexMagic...)
	// How many ids start with this byte or a lower one.
	next := 0
	for first := range 256 {
		for next < len(ids) && int(ids[next][0]) == first {
			next++
		}
		index = binary.BigEndian.AppendUint32(index, uint32(next))
	}
	for _, id := range ids {
		index = append(index, id[:]...)
	}
	for _, id := range ids {
		index = binary.BigEndian.AppendUint32(index, objects[id].crc)
	}
	// Offsets of 31 bits are enough for packs that are bounded far below 2 GiB.
	for _, id := range ids {
		index = binary.BigEndian.AppendUint32(index, uint32(objects[id].offset))
	}
	index = append(index, pack[:]...)
	sum := sha1.Sum(index)
	return append(index, sum[:]...)
}
