package history

import (
	"fmt"
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
		if !has(x, id) || has(x, other) {
			t.Fatalf("%s is in it %t, %s %t", id, has(x, id), other, has(x, other))
		}
	}
	for _, edge := range []object.ID{{}, parse(t, strings.Repeat("f", 40))} {
		if has(x, edge) {
			t.Errorf("it has %s", edge)
		}
	}
	// As one of a pack above 2 GiB would be, in which most offsets stand apart.
	large := filepath.Join(t.TempDir(), "large.idx")
	peer.run("index-pack", "--index-version=2,0x100", "-o", large, pack)
	y := openIDs(large)
	defer y.close()
	for line := range strings.Lines(peer.feed(string(must(os.ReadFile(large))), "show-index")) {
		fields := strings.Fields(line)
		id := parse(t, fields[1])
		small, ok := x.offset(id)
		if same, also := y.offset(id); !ok || !also || fmt.Sprint(small) != fields[0] || same != small {
			t.Fatalf("%s is at %d, %t, and %d, %t, want %s", id, small, ok, same, also, fields[0])
		}
	}
	whole := must(os.ReadFile(index))
	for name, content := range map[string][]byte{
		"empty": nil, "its head": whole[:indexIDs], "cut off": whole[:len(whole)/2], "of another version": append([]byte("\xfftOc\x00\x00\x00\x03"), whole[8:]...),
	} {
		overwrite(t, index, content)
		damaged := openIDs(index)
		if has(damaged, ids[0]) {
			t.Errorf("%s: it has an object", name)
		}
		damaged.close()
	}
	if has(openIDs(index+"x"), ids[0]) {
		t.Error("one that is not there has an object")
	}
}

func has(x idIndex, id object.ID) bool {
	_, ok := x.offset(id)
	return ok
}
