package history

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// An index of any bytes finds at most what it lists, and nothing is read beyond it, which
// would end the process.
func FuzzPackIndex(f *testing.F) {
	index := func(count int, large bool) []byte {
		b := append([]byte(indexMagic), make([]byte, 256*4)...)
		for i := range 256 {
			binary.BigEndian.PutUint32(b[indexFan+4*i:], uint32(min(i, count)))
		}
		for i := range count {
			b = append(b, append([]byte{byte(i + 1)}, make([]byte, object.IDSize-1)...)...)
		}
		b = append(b, make([]byte, 4*count)...)
		for i := range count {
			offset := uint32(12 + i)
			if large {
				offset = 1<<31 | uint32(i)
			}
			b = binary.BigEndian.AppendUint32(b, offset)
		}
		for i := range count {
			b = binary.BigEndian.AppendUint64(b, uint64(1)<<32+uint64(i))
		}
		return append(b, make([]byte, 40)...)
	}
	f.Add(index(3, false), byte(1))
	f.Add(index(3, true), byte(3))
	f.Add(index(255, true)[:indexIDs+255*perID], byte(255))
	f.Add([]byte(indexMagic), byte(0))
	f.Fuzz(func(t *testing.T, content []byte, first byte) {
		path := filepath.Join(t.TempDir(), "x.idx")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		x := openIDs(path)
		defer x.close()
		for _, id := range []object.ID{{first}, {first, 1}, {}, {0xff}} {
			if offset, ok := x.offset(id); ok && (offset < 0 || !bytes.Contains(content, id[:])) {
				t.Errorf("%s is at %d", id, offset)
			}
		}
	})
}

// A pack of any bytes has no chain of deltas that does not end, and what reading an object
// of it takes is told or is an error.
func FuzzPack(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x35x\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27"), int64(12))
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x65\x01x\x9c\x03\x00\x00\x00\x00\x01"), int64(12))
	f.Add(append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x7f"), make([]byte, 30)...), int64(12))
	f.Add(bytes.Repeat([]byte{0xff}, 40), int64(1))
	f.Fuzz(func(t *testing.T, content []byte, at int64) {
		path := filepath.Join(t.TempDir(), "x.pack")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		pack := &packChains{path: path, largest: map[int64]int64{}}
		defer pack.close()
		at = max(1, at&0xff)
		if size, err := pack.chain(at); err == nil && size < 0 {
			t.Errorf("it takes %d bytes", size)
		}
		if e, err := readEntry(pack.file, at); err == nil && (e.base < 0 || e.base >= e.at) {
			t.Errorf("the base of %d is at %d", e.at, e.base)
		}
		if found := openEntry(path, at, 3); found != nil {
			_ = found.file.Close() // It was only read.
		}
	})
}

// How an entry of a pack begins is read as it is written.
func FuzzEntryHeader(f *testing.F) {
	f.Add([]byte{0x35}, int64(3))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, int64(1<<40))
	f.Fuzz(func(t *testing.T, content []byte, size int64) {
		if _, got, err := readEntryHeader(bytes.NewReader(content)); err == nil && got < 0 {
			t.Errorf("%q has %d bytes", content, got)
		}
		if back, err := readBack(bytes.NewReader(content)); err == nil && back < 0 {
			t.Errorf("%q is %d bytes back", content, back)
		}
		size &= 1<<50 - 1
		written := appendEntryHeader(nil, git.ObjectBlob, int(size))
		if kind, got, err := readEntryHeader(bytes.NewReader(written)); err != nil || kind != git.ObjectBlob || got != size {
			t.Errorf("%d bytes are read as %d of kind %v, %v", size, got, kind, err)
		}
	})
}

// A path that is taken is one that git takes, whatever system it is made for: what a pod
// makes must not keep a server or another node from the whole commit.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"a/b", ".git", ".GIT/x", "a/.git\u200c/b", "git~1", ".git ", ".git::$INDEX_ALLOCATION", "a\\.git\\x", "..", "a//b", "/a", "a/", ".gitmodules", "\xff\n", "CON", "a:b",
		".git.", ".g\u0131t", strings.Repeat("x", 255), "GIT~1/x", ".git...::$x", "x\\..\\y",
	} {
		f.Add(path)
	}
	dir := f.TempDir()
	if out, err := exec.Command("git", "init", "-q", "--bare", dir).CombinedOutput(); err != nil {
		f.Fatalf("%v: %s", err, out)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if len(path) > 1000 || CheckPath(path) != nil {
			return
		}
		index := exec.Command("git", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "-z", "--index-info")
		index.Env = append(os.Environ(), "GIT_DIR="+dir, "GIT_INDEX_FILE="+filepath.Join(t.TempDir(), "index"))
		index.Stdin = strings.NewReader("100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\t" + path + "\x00")
		if out, err := index.CombinedOutput(); err != nil || strings.Contains(string(out), "Ignoring") {
			t.Errorf("%q is taken, and git does not: %v %s", path, err, out)
		}
	})
}
