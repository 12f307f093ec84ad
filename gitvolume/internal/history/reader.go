package history

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// Bounds of what is read whole for a Reader. A blob that is stored as a delta cannot be
// streamed; git stores none above 512 MiB so unless it is told to.
const (
	readWhole = 1 << 20
	maxDelta  = 512 << 20
)

// Reader yields a blob and tells its size, in constant memory unless the blob is stored
// as a delta of another. The content is checked against its id: at the end, the error
// is ErrDamaged in place of io.EOF if it is not what was committed. The caller closes
// the reader; it stays good while the repository is changed or closed.
func (r *Repository) Reader(blob object.ID) (io.ReadCloser, int64, error) {
	if _, ok := r.pending.objects[blob]; ok {
		return r.whole(blob, maxContent)
	}
	stored, err := r.openLoose(blob)
	switch {
	case err != nil:
		return nil, 0, err
	case stored != nil && stored.kind != git.ObjectBlob:
		if err := stored.file.Close(); err != nil {
			return nil, 0, fmt.Errorf("close %s: %w", blob, err)
		}
		return r.whole(blob, maxContent)
	case stored != nil:
		return newChecked(blob, stored.size, stored.deflated), stored.size, nil
	}
	kind, size, err := r.packedHeader(blob)
	switch {
	case err != nil:
		return nil, 0, err
	case kind != git.ObjectBlob:
		return r.whole(blob, maxContent)
	case size > readWhole:
		found, err := r.openPacked(blob, size)
		if err != nil {
			return nil, 0, err
		}
		if found != nil {
			return newChecked(blob, size, *found), size, nil
		}
	}
	return r.whole(blob, maxDelta)
}

// whole reads the blob into memory, where libgit2 checks it.
func (r *Repository) whole(blob object.ID, limit uint64) (io.ReadCloser, int64, error) {
	content, err := r.get(blob, git.ObjectBlob, limit)
	return io.NopCloser(bytes.NewReader(content)), int64(len(content)), err
}

// deflated is the content of an object that is read from a file.
type deflated struct {
	io.Reader
	file *os.File
}

// checked is a blob's content on its way to the caller.
type checked struct {
	from deflated
	id   object.ID
	left int64
	sum  hash.Hash
}

func newChecked(id object.ID, size int64, from deflated) *checked {
	c := &checked{from: from, id: id, left: size, sum: sha1.New()}
	c.sum.Write(fmt.Appendf(nil, "blob %d\x00", size))
	return c
}

// Read implements io.Reader.
func (c *checked) Read(b []byte) (int, error) {
	if c.left == 0 {
		if object.ID(c.sum.Sum(nil)) != c.id {
			return 0, fmt.Errorf("read %s: it has other bytes: %w", c.id, ErrDamaged)
		}
		return 0, io.EOF
	}
	if int64(len(b)) > c.left {
		b = b[:c.left]
	}
	n, err := c.from.Read(b)
	c.sum.Write(b[:n])
	c.left -= int64(n)
	if err != nil && (c.left > 0 || !errors.Is(err, io.EOF)) {
		return n, fmt.Errorf("read %s with %d bytes to come: %w: %w", c.id, c.left, ErrDamaged, err)
	}
	return n, nil
}

// Close implements io.Closer.
func (c *checked) Close() error { return c.from.file.Close() }
