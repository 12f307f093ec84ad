package history

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// noise yields bytes that do not get smaller.
func noise(size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{1}), size)
}

func TestBlobFrom(t *testing.T) {
	r, peer := newRepository(t)
	for _, size := range []int64{0, 1, 1000, streamAt - 1, streamAt, streamAt + 7} {
		want := must(io.ReadAll(noise(size)))
		id, err := r.BlobFrom(bytes.NewReader(want), size)
		if err != nil {
			t.Fatal(err)
		}
		if again := must(r.BlobFrom(bytes.NewReader(want), size)); again != id || must(r.Blob(want)) != id {
			t.Errorf("%d bytes again are %s, not %s", size, again, id)
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := peer.id(string(want), "hash-object", "--stdin"); got != id {
			t.Errorf("%d bytes are %s, for git %s", size, id, got)
		}
		if got, err := r.Content(id); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes are read as %d, %v", size, len(got), err)
		}
		for name, from := range map[string]io.Reader{
			"shorter": bytes.NewReader(want[:max(0, size-1)]), "longer": io.MultiReader(bytes.NewReader(want), strings.NewReader("x")),
			"failing": io.MultiReader(bytes.NewReader(want[:size/2]), failing{}),
		} {
			if size == 0 && name == "shorter" {
				continue
			}
			if got, err := r.BlobFrom(from, size); err == nil || !errors.Is(err, ErrSize) && name != "failing" {
				t.Errorf("%d bytes, %s: got %s, %v", size, name, got, err)
			}
		}
	}
	peer.fsck()
	left := must(filepath.Glob(filepath.Join(r.dir, "objects", "pack", "tmp_*")))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// failing fails to be read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, os.ErrPermission }

func TestReader(t *testing.T) {
	r, peer := newRepository(t)
	large := must(io.ReadAll(noise(3 * readWhole)))
	loose := peer.id(string(large), "hash-object", "-w", "--stdin")
	packed := must(r.Blob(append(large[:readWhole*2:readWhole*2], "packed"...)))
	pending := must(r.Blob([]byte("small")))
	check := func(what string) {
		t.Helper()
		for id, want := range map[object.ID][]byte{loose: large, packed: append(large[:readWhole*2:readWhole*2], "packed"...), pending: []byte("small")} {
			reader, size, err := r.Reader(id)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			got, err := io.ReadAll(reader)
			if err := errors.Join(err, reader.Close()); err != nil || !bytes.Equal(got, want) || size != int64(len(want)) {
				t.Errorf("%s: read %d bytes of %d, %v", what, len(got), len(want), err)
			}
		}
	}
	check("pending")
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	if found := must(r.openPacked(packed, readWhole*2+6)); found == nil {
		t.Error("a blob in a pack is not streamed")
	} else if err := found.file.Close(); err != nil {
		t.Error(err)
	}
	check("as written")
	tree := must(r.Edit(object.ID{}, []Change{{"a", object.Regular, loose}, {"b", object.Regular, packed}, {"c", object.Regular, pending}}))
	if err := r.SetRef("refs/heads/main", commit(t, r, tree), object.ID{}); err != nil {
		t.Fatal(err)
	}
	peer.run("-c", "pack.window=10", "repack", "-adfq")
	check("repacked, one as a delta of the other")
	for name, id := range map[string]object.ID{"missing": parse(t, strings.Repeat("12", 20)), "a tree": tree} {
		if _, _, err := r.Reader(id); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReaderDamaged(t *testing.T) {
	r, peer := newRepository(t)
	large := must(io.ReadAll(noise(2 * readWhole)))
	id := peer.id(string(large), "hash-object", "-w", "--stdin")
	path := filepath.Join(r.dir, "objects", id.String()[:2], id.String()[2:])
	whole := must(os.ReadFile(path))
	for name, damage := range map[string]func([]byte) []byte{
		"cut off":     func(b []byte) []byte { return b[:len(b)/2] },
		"a bit flips": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
	} {
		if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, damage(bytes.Clone(whole)), 0o600)); err != nil {
			t.Fatal(err)
		}
		reader, _, err := r.Reader(id)
		if err == nil {
			_, err = io.Copy(io.Discard, reader)
			err = errors.Join(err, reader.Close())
		}
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBlobFromMemory streams 256 MiB both ways. What libgit2 holds counts as well, so
// it is the process's memory that is measured.
func TestBlobFromMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 256 MiB")
	}
	const size, bound = 256 << 20, 48 << 20
	r, _ := newRepository(t)
	before := resident(t, "VmRSS:")
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // The peak starts anew.
		t.Fatal(err)
	}
	id, err := r.BlobFrom(noise(size), size)
	if err != nil {
		t.Fatal(err)
	}
	reader, _, err := r.Reader(id)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, reader); err != nil || n != size {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if after := resident(t, "VmHWM:"); after-before > bound {
		t.Errorf("the process grew by %d bytes, the bound is %d", after-before, bound)
	}
}

// zeros yields that many zero bytes.
func zeros(size int64) io.Reader { return io.LimitReader(zero{}, size) }

type zero struct{}

func (zero) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// resident is how much memory the process has (VmRSS:) or had at most (VmHWM:).
func resident(t testing.TB, which string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == which {
			return must(strconv.ParseInt(fields[1], 10, 64)) << 10
		}
	}
	t.Fatal("the process does not tell its memory")
	return 0
}
