package history

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"sort"
	"strings"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// openPacked opens a blob that some pack holds whole, or gives nil if none does.
func (r *Repository) openPacked(id object.ID, size int64) (*deflated, error) {
	indexes, err := r.packIndexes()
	if err != nil {
		return nil, err
	}
	for _, index := range indexes {
		// A pack that cannot be read is not the one that libgit2 found the blob in, or
		// has been deleted since: then it is read whole.
		offset, ok := findInIndex(index, id)
		if !ok {
			continue
		}
		if found := openEntry(strings.TrimSuffix(index, ".idx")+".pack", offset, size); found != nil {
			return found, nil
		}
	}
	return nil, nil
}

// packIndexes are the indexes of the packs that the repository has.
func (r *Repository) packIndexes() ([]string, error) {
	return listSuffix(r.packDir(), ".idx")
}

// findInIndex looks an object up in a pack's index of version 2.
func findInIndex(path string, id object.ID) (offset int64, ok bool) {
	file, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	const fan, ids = 8, 8 + 256*4
	var head [ids]byte
	if _, err := file.ReadAt(head[:], 0); err != nil || string(head[:fan]) != indexMagic {
		return 0, false
	}
	upTo := func(first int) int64 {
		if first < 0 {
			return 0
		}
		return int64(binary.BigEndian.Uint32(head[fan+4*first:]))
	}
	low, high, count := upTo(int(id[0])-1), upTo(int(id[0])), upTo(255)
	if low > high || high > count {
		return 0, false
	}
	var at object.ID
	read := func(i int) object.ID {
		if _, err := file.ReadAt(at[:], ids+(low+int64(i))*object.IDSize); err != nil {
			return object.ID{}
		}
		return at
	}
	i := sort.Search(int(high-low), func(i int) bool { at := read(i); return bytes.Compare(at[:], id[:]) >= 0 })
	if i == int(high-low) || read(i) != id {
		return 0, false
	}
	var word [8]byte
	offsets := ids + count*(object.IDSize+4)
	if _, err := file.ReadAt(word[:4], offsets+(low+int64(i))*4); err != nil {
		return 0, false
	}
	small := binary.BigEndian.Uint32(word[:])
	if small <= math.MaxInt32 {
		return int64(small), true
	}
	if _, err := file.ReadAt(word[:], offsets+count*4+int64(small&math.MaxInt32)*8); err != nil {
		return 0, false
	}
	offset = int64(binary.BigEndian.Uint64(word[:]))
	return offset, offset > 0
}

// openEntry opens a pack at a blob of that size; nil if there is something else, such
// as a delta.
func openEntry(path string, offset, size int64) *deflated {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	from := bufio.NewReader(io.NewSectionReader(file, offset, math.MaxInt64-offset))
	kind, got, err := readEntryHeader(from)
	if err == nil && kind == git.ObjectBlob && got == size {
		if inflate, err := zlib.NewReader(from); err == nil {
			return &deflated{inflate, file}
		}
	}
	_ = file.Close() // It was only read.
	return nil
}

// readEntryHeader reads what appendEntryHeader writes.
func readEntryHeader(from io.ByteReader) (git.ObjectType, int64, error) {
	b, err := from.ReadByte()
	kind, size := git.ObjectType(b>>4&7), int64(b&0x0f)
	for shift := 4; err == nil && b&0x80 != 0; shift += 7 {
		if shift > 53 {
			return kind, 0, errors.New("the size of an entry has too many bits")
		}
		b, err = from.ReadByte()
		size |= int64(b&0x7f) << shift
	}
	return kind, size, err
}
