package worktree

import (
	"crypto/sha1"
	"fmt"
	"hash"
	"io"

	"liken.sh/gitvolume/internal/object"
)

// Blobs takes the content of changed files and gives the ids that a commit names.
// *history.Repository keeps it, a Hasher does not.
type Blobs interface {
	Blob(content []byte) (object.ID, error)
	// BlobFrom has an error if the reader does not yield exactly size bytes.
	BlobFrom(from io.Reader, size int64) (object.ID, error)
}

// Hasher tells the ids and keeps nothing: for a volume that is looked at and not
// committed.
type Hasher struct{}

// Blob is the id of the content.
func (Hasher) Blob(content []byte) (object.ID, error) {
	sum := newBlobSum(int64(len(content)))
	sum.Write(content)
	return sum.id(), nil
}

// BlobFrom is the id of what the reader yields.
func (Hasher) BlobFrom(from io.Reader, size int64) (object.ID, error) {
	sum := newBlobSum(size)
	n, err := io.CopyBuffer(sum, io.LimitReader(from, size+1), make([]byte, 256<<10))
	if err == nil && n != size {
		err = fmt.Errorf("the content has another size than %d bytes", size)
	}
	if err != nil {
		return object.ID{}, fmt.Errorf("hash a file: %w", err)
	}
	return sum.id(), nil
}

// blobSum makes git's id of a blob. SHA-1 is git's choice; what an application might
// gain from two files with one id is that the second of its own is not committed.
type blobSum struct{ hash.Hash }

func newBlobSum(size int64) blobSum {
	sum := blobSum{sha1.New()}
	sum.Write(fmt.Appendf(nil, "blob %d\x00", size))
	return sum
}

func (s blobSum) id() object.ID {
	var id object.ID
	s.Sum(id[:0])
	return id
}
