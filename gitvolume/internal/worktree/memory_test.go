package worktree

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

// someEntry draws what may be remembered of a path.
func someEntry(t *rapid.T) Entry {
	stat := Stat{
		Size: rapid.Int64Min(0).Draw(t, "size"), Modified: rapid.Int64().Draw(t, "mtime"), Changed: rapid.Int64().Draw(t, "ctime"),
		Inode: rapid.Uint64Min(1).Draw(t, "inode"), Mode: rapid.Uint32().Draw(t, "mode"),
		Owner: rapid.Uint32().Draw(t, "owner"), Group: rapid.Uint32().Draw(t, "group"),
	}
	id := object.ID{byte(rapid.IntRange(1, 255).Draw(t, "blob"))}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return Entry{}
	case 1:
		return Entry{Stat: stat, Mode: object.Directory}
	case 2:
		return Entry{Stat: stat, Mode: object.Submodule, Blob: id}
	case 3:
		return Entry{Stat: stat, Left: Kind}
	}
	mode := rapid.SampledFrom([]object.Mode{object.Regular, object.Executable, object.Symlink}).Draw(t, "tracked as")
	return Entry{Stat: stat, Mode: mode, Blob: id, Racy: rapid.Bool().Draw(t, "racy")}
}

// model is the plain way to remember a tree.
type model map[string]Entry

func (m model) edit(e Edit) {
	isDirectory := e.Mode == object.Directory || e.Mode == object.Submodule
	for path := range m {
		if strings.HasPrefix(path, e.Path+"/") && !isDirectory || path == e.Path {
			delete(m, path)
		}
	}
	if e.Entry.isZero() {
		return
	}
	m[e.Path] = e.Entry
	for dir, _ := split(e.Path); dir != "."; dir, _ = split(dir) {
		if old := m[dir]; old.Mode != object.Directory && old.Mode != object.Submodule {
			m[dir] = Entry{Mode: object.Directory}
		}
	}
}

func TestMemoryEqualsAPlainMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a.", "\xff", "new\nline"}), 1, 4).Draw(t, "names"), "/")
		})
		want := model{".": {Mode: object.Directory}}
		var m *Memory
		for range rapid.IntRange(0, 8).Draw(t, "rounds") {
			var edits []Edit
			for _, p := range rapid.SliceOfNDistinct(path, 0, 6, rapid.ID[string]).Draw(t, "paths") {
				edits = append(edits, Edit{p, someEntry(t)})
			}
			// In one call what is above counts before what is below.
			for _, e := range sortedEdits(edits) {
				want.edit(e)
			}
			before := maps.Collect(m.All())
			after := m.With(edits)
			if !maps.Equal(before, maps.Collect(m.All())) {
				t.Fatal("an edit changed the memory it was made on")
			}
			m = after
			if got := model(maps.Collect(m.All())); !maps.Equal(got, want) {
				t.Fatalf("remembered %v\nwant %v", got, want)
			}
		}
		tracked := 0
		for path, e := range want {
			if m.Entry(path) != e {
				t.Fatalf("entry %q: %v, want %v", path, m.Entry(path), e)
			}
			if e.Mode != 0 && e.Mode != object.Directory {
				tracked++
			}
		}
		if m.Tracked() != tracked {
			t.Fatalf("%d tracked, want %d", m.Tracked(), tracked)
		}
		text := written(t, m)
		again, err := ReadMemory(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := model(maps.Collect(again.All())); !maps.Equal(got, want) || again.Tracked() != tracked {
			t.Fatalf("read again: %v\nwant %v", got, want)
		}
	})
}

func sortedEdits(edits []Edit) []Edit {
	sorted := append([]Edit(nil), edits...)
	for i := range sorted {
		for j := i; j > 0 && sorted[j].Path < sorted[j-1].Path; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	return sorted
}

func written(t interface{ Fatal(...any) }, m *Memory) []byte {
	var text bytes.Buffer
	n, err := m.WriteTo(&text)
	if err != nil || n != int64(text.Len()) {
		t.Fatal("wrote", n, "of", text.Len(), err)
	}
	return text.Bytes()
}

func TestABrokenMemoryIsNoMemory(t *testing.T) {
	text := written(t, manyFiles(3, 5))
	if _, err := ReadMemory(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	for end := range text {
		if _, err := ReadMemory(bytes.NewReader(text[:end])); !errors.Is(err, ErrBroken) {
			t.Fatalf("cut at %d of %d: %v", end, len(text), err)
		}
	}
	for range 2000 {
		bad := bytes.Clone(text)
		bad[rand.IntN(len(bad))] ^= 1 << rand.IntN(8)
		if _, err := ReadMemory(bytes.NewReader(bad)); !errors.Is(err, ErrBroken) {
			t.Fatalf("one wrong bit: %v", err)
		}
	}
}

func FuzzReadMemory(f *testing.F) {
	f.Add(written(f, manyFiles(2, 2))[len(memoryHeader):])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &memoryReader{rest: body}
		if root := r.folder("", 0); !r.failed && len(r.rest) == 0 {
			// What is read is sound: it can be looked through and written.
			m := &Memory{root: root}
			for path := range m.All() {
				if m.Entry(path).isZero() && path != "." {
					continue // Nothing but a name is remembered.
				}
			}
			written(t, m)
		}
	})
}

// manyFiles is the memory of a tree of that many directories with that many files each.
func manyFiles(dirs, files int) *Memory {
	edits := make([]Edit, 0, dirs*(files+1))
	for d := range dirs {
		dir := fmt.Sprintf("directory-%04d", d)
		edits = append(edits, Edit{dir, Entry{Stat: Stat{Inode: uint64(d + 1), Mode: 0o40755}, Mode: object.Directory}})
		for f := range files {
			stat := Stat{Size: int64(f), Modified: 1700000000123456789, Changed: 1700000000123456789, Inode: uint64(1000 + d*files + f), Mode: 0o100644}
			edits = append(edits, Edit{fmt.Sprintf("%s/file-%04d.txt", dir, f), Entry{Stat: stat, Mode: object.Regular, Blob: object.ID{1, byte(f)}}})
		}
	}
	return (*Memory)(nil).With(edits)
}

// TestMemoryIsSmall keeps a watched tree of 100,000 files within its 40 MiB.
func TestMemoryIsSmall(t *testing.T) {
	text := written(t, manyFiles(1000, 100))
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	m, err := ReadMemory(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(heap()) - int64(before)
	if size > 12<<20 {
		t.Errorf("%d bytes for %d files: %d a file", size, m.Tracked(), size/int64(m.Tracked()))
	}
	t.Logf("%d bytes, %d a file; %d in the store", size, size/int64(m.Tracked()), len(text))
	runtime.KeepAlive(m)
	runtime.KeepAlive(text)
}
