package history

import (
	"bufio"
	"compress/zlib"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"

	git "github.com/libgit2/git2go/v34"
	"github.com/pjbgf/sha1cd"

	"liken.sh/csicommon/errortext"
	"liken.sh/gitvolume/internal/object"
)

// writeLarge writes a blob of exactly that size as a pack of its own, durably, and in
// constant memory. Not as a loose object: libgit2 does not write one that it finds in
// the repository already, which a gc may be about to drop (see put). And not by libgit2's
// indexer, which maps the whole blob into memory.
func (r *Repository) writeLarge(from io.Reader, size int64) (object.ID, error) {
	file, err := os.CreateTemp(r.packDir(), temporary)
	if err != nil {
		return object.ID{}, fmt.Errorf("make a temporary file: %w", errortext.WithoutPath(err))
	}
	p := largePack{file: bufio.NewWriterSize(nameless{file}, 256<<10), sum: sha1.New(), crc: crc32.NewIEEE()}
	id, err := p.write(from, size)
	if err == nil {
		err = errortext.WithoutPath(file.Chmod(0o444))
	}
	if err != nil {
		return object.ID{}, errors.Join(err, discard(file))
	}
	entry := packed{offset: packHeader, crc: p.crc.Sum32()}
	index := packIndex(map[object.ID]packed{id: entry}, [sha1.Size]byte(p.sum.Sum(nil)))
	if err := r.placePack(file, index); err != nil {
		return object.ID{}, fmt.Errorf("complete a blob: %w", err)
	}
	return id, r.added()
}

// largePack is a pack of one blob that is being written.
type largePack struct {
	file *bufio.Writer
	sum  hash.Hash   // Over the pack.
	crc  hash.Hash32 // Over its entry.
}

// write writes the whole pack and gives the blob's id.
func (p *largePack) write(from io.Reader, size int64) (object.ID, error) {
	head := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01")
	_, err := io.MultiWriter(p.file, p.sum).Write(head)
	if err != nil {
		return object.ID{}, fmt.Errorf("begin a pack: %w", err)
	}
	entry := io.MultiWriter(p.file, p.sum, p.crc)
	if _, err := entry.Write(appendEntryHeader(nil, git.ObjectBlob, int(size))); err != nil {
		return object.ID{}, fmt.Errorf("begin a blob: %w", err)
	}
	deflate, err := zlib.NewWriterLevel(entry, zlib.BestSpeed)
	if err != nil {
		return object.ID{}, fmt.Errorf("deflate a blob: %w", err)
	}
	sum := sha1cd.New()
	sum.Write(fmt.Appendf(nil, "%s %d\x00", kindName(git.ObjectBlob), size))
	content := io.MultiWriter(deflate, sum)
	switch n, err := io.CopyBuffer(content, io.LimitReader(from, size), make([]byte, 256<<10)); {
	case err != nil:
		return object.ID{}, fmt.Errorf("write a blob: %w", err)
	case n < size:
		return object.ID{}, shortOf(size, io.ErrUnexpectedEOF)
	}
	if err := atEnd(from, size); err != nil {
		return object.ID{}, err
	}
	err = deflate.Close()
	if err == nil {
		_, err = p.file.Write(p.sum.Sum(nil))
	}
	if err := errors.Join(err, p.file.Flush()); err != nil {
		return object.ID{}, fmt.Errorf("write a blob: %w", err)
	}
	return safeID(sum)
}

// safeID is the id that was summed up, unless what was has another id to git, which finds
// the known ways to make two files with one. Summing it up takes about a quarter of the
// time of deflating it; libgit2 does so only for what is in memory as a whole.
func safeID(sum hash.Hash) (object.ID, error) {
	finding, ok := sum.(sha1cd.CollisionResistantHash)
	if !ok {
		return object.ID{}, fmt.Errorf("a %T finds no collisions", sum)
	}
	id, collides := finding.CollisionResistantSum(nil)
	if collides {
		return object.ID{}, fmt.Errorf("it is one of two files made to have one id: %w", ErrContent)
	}
	return object.ID(id), nil
}
