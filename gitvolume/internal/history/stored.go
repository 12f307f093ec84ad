package history

import (
	"bufio"
	"compress/zlib"
	"errors"
	"io"
	"math"
	"os"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// openPacked opens a blob that some pack holds whole, or gives nil if none does.
func (r *Repository) openPacked(id object.ID, size int64) (*deflated, error) {
	if err := r.chains.update(); err != nil {
		return nil, err
	}
	for _, pack := range r.chains.packs {
		// A pack that cannot be read is not the one that libgit2 found the blob in, or
		// has been deleted since: then it is read whole.
		offset, ok := pack.ids.offset(id)
		if !ok {
			continue
		}
		if found := openEntry(pack.path, offset, size); found != nil {
			return found, nil
		}
	}
	return nil, nil
}

// packIndexes are the indexes of the packs that the repository has.
func (r *Repository) packIndexes() ([]string, error) {
	return listSuffix(r.packDir(), ".idx")
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
