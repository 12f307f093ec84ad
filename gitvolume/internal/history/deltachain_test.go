package history

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// TestDeltaOfHuge reads a few bytes that are stored as a delta of far more.
func TestDeltaOfHuge(t *testing.T) {
	const huge = maxBase + 1
	for _, kind := range []git.ObjectType{offsetDelta, namedDelta} {
		for _, size := range []int64{1 << 20, huge} {
			t.Run(fmt.Sprintf("kind %d, %d bytes", kind, size), func(t *testing.T) {
				r, peer := newRepository(t)
				base := idOf(t, size)
				delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), 4)
				pack := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02")
				pack = appendEntry(t, pack, git.ObjectBlob, nil, zeros(size), size)
				var named []byte
				if kind == namedDelta {
					named = base[:]
				} else {
					named = appendBack(nil, len(pack)-packHeader)
				}
				delta = append(delta, 4, 't', 'i', 'n', 'y')
				pack = appendEntry(t, pack, kind, named, bytes.NewReader(delta), int64(len(delta)))
				sum := sha1.Sum(pack)
				peer.feed(string(append(pack, sum[:]...)), "index-pack", "--stdin")
				small := peer.id("tiny", "hash-object", "--stdin")
				got, err := r.get(small, git.ObjectBlob, 1<<20)
				if size == huge {
					if !errors.Is(err, ErrTooLarge) {
						t.Errorf("got %q, %v", got, err)
					}
				} else if err != nil || string(got) != "tiny" {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
	}
}

// idOf is the id of a blob of that many zeros.
func idOf(t *testing.T, size int64) object.ID {
	t.Helper()
	sum := sha1.New()
	sum.Write(fmt.Appendf(nil, "blob %d\x00", size))
	if _, err := io.Copy(sum, zeros(size)); err != nil {
		t.Fatal(err)
	}
	return object.ID(sum.Sum(nil))
}

// appendEntry appends an entry to a pack.
func appendEntry(t *testing.T, pack []byte, kind git.ObjectType, base []byte, from io.Reader, size int64) []byte {
	t.Helper()
	b := bytes.NewBuffer(append(appendEntryHeader(pack, kind, int(size)), base...))
	deflate := zlib.NewWriter(b)
	_, err := io.Copy(deflate, from)
	if err := errors.Join(err, deflate.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
