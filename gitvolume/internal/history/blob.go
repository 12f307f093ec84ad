package history

import (
	"errors"
	"fmt"
	"io"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// streamAt is the size from which a blob is written by itself, in constant memory.
const streamAt = 4 << 20

// maxContent bounds what Content reads.
const maxContent = 256 << 20

// ErrSize says that a stream did not have the size it was said to have.
var ErrSize = errors.New("the content has another size than expected")

// Blob adds a file's content, or a symlink's destination.
func (r *Repository) Blob(content []byte) (object.ID, error) { return r.put(git.ObjectBlob, content) }

// Content is what a blob holds. One above 256 MiB is ErrTooLarge: use Reader.
func (r *Repository) Content(blob object.ID) ([]byte, error) {
	return r.get(blob, git.ObjectBlob, maxContent)
}

// BlobFrom adds the content that the reader yields, which has to be exactly size bytes
// (else ErrSize). A large one is not pending but durable at once, as a pack of its own,
// and takes constant memory. Content made to share its id with another is ErrContent, as
// it is for Blob.
func (r *Repository) BlobFrom(from io.Reader, size int64) (object.ID, error) {
	if size < streamAt {
		content := make([]byte, max(size, 0))
		if _, err := io.ReadFull(from, content); err != nil {
			return object.ID{}, shortOf(size, err)
		}
		if err := atEnd(from, size); err != nil {
			return object.ID{}, err
		}
		return r.Blob(content)
	}
	return r.writeLarge(from, size)
}

// shortOf is the error of a reader that ended early or failed.
func shortOf(size int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read a file of %d bytes: it is shorter: %w", size, ErrSize)
	}
	return fmt.Errorf("read a file of %d bytes: %w", size, err)
}

// atEnd checks that the reader has nothing more.
func atEnd(from io.Reader, size int64) error {
	var more [1]byte
	for {
		switch n, err := from.Read(more[:]); {
		case n > 0:
			return fmt.Errorf("read a file of %d bytes: it is longer: %w", size, ErrSize)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a file of %d bytes: %w", size, err)
		}
	}
}
