package history

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// TestWrittenAgain adds objects that no ref leads to once more, and then deletes the
// packs they were in, as a gc does that looked at the refs before.
func TestWrittenAgain(t *testing.T) {
	for name, size := range map[string]int64{"small": 1000, "large": streamAt} {
		t.Run(name, func(t *testing.T) {
			r, peer := newRepository(t)
			add := func() object.ID {
				blob := must(r.BlobFrom(noise(size), size))
				if err := r.Flush(); err != nil {
					t.Fatal(err)
				}
				return blob
			}
			blob := add()
			old := must(filepath.Glob(filepath.Join(r.dir, "objects", "pack", "*")))
			if len(old) != 2 {
				t.Fatalf("the packs are %q", old)
			}
			if again := add(); again != blob {
				t.Fatalf("it is %s, and then %s", blob, again)
			}
			for _, path := range old {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			tree := must(r.Edit(object.ID{}, []Change{{"f", object.Regular, blob}}))
			if err := r.SetRef("refs/heads/main", commit(t, r, tree), object.ID{}); err != nil {
				t.Fatal(err)
			}
			peer.fsck()
			reader, _, err := openRepository(t, r.dir).Reader(blob)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, reader)
			if err := errors.Join(err, reader.Close()); err != nil || n != size {
				t.Errorf("read %d bytes, %v", n, err)
			}
			if loose := must(filepath.Glob(filepath.Join(r.dir, "objects", "??"))); len(loose) > 0 {
				t.Errorf("there are loose objects: %q", loose)
			}
		})
	}
}
