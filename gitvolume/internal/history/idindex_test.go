package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// TestIDIndex asks an index that git wrote, and ones that are damaged.
func TestIDIndex(t *testing.T) {
	r, peer := newRepository(t)
	var ids []object.ID
	for i := range 2000 {
		ids = append(ids, must(r.Blob([]byte{byte(i), byte(i >> 8)})))
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	pack := must(filepath.Glob(filepath.Join(r.dir, "objects/pack/*.pack")))[0]
	index := filepath.Join(t.TempDir(), "x.idx")
	peer.run("index-pack", "-o", index, pack)
	x := openIDs(index)
	defer x.close()
	for _, id := range ids {
		other := id
		other[object.IDSize-1] ^= 1
		if !x.has(id) || x.has(other) {
			t.Fatalf("%s is in it %t, %s %t", id, x.has(id), other, x.has(other))
		}
	}
	for _, edge := range []object.ID{{}, parse(t, strings.Repeat("f", 40))} {
		if x.has(edge) {
			t.Errorf("it has %s", edge)
		}
	}
	whole := must(os.ReadFile(index))
	for name, content := range map[string][]byte{
		"empty": nil, "its head": whole[:indexIDs], "cut off": whole[:len(whole)/2], "of another version": append([]byte("\xfftOc\x00\x00\x00\x03"), whole[8:]...),
	} {
		overwrite(t, index, content)
		damaged := openIDs(index)
		if damaged.has(ids[0]) {
			t.Errorf("%s: it has an object", name)
		}
		damaged.close()
	}
	if openIDs(index + "x").has(ids[0]) {
		t.Error("one that is not there has an object")
	}
}
