package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// A checkout's note of any bytes is an error or one that is written as it was read.
func FuzzNote(f *testing.F) {
	id := strings.Repeat("1", 40)
	f.Add([]byte(`{"commit":"` + id + `","tree":"` + id + `"}`))
	f.Add([]byte(`{"commit":"` + id + `","tree":"` + id + `","next":{"commit":"` + id + `","tree":"` + id + `","token":"../x"}}`))
	f.Add([]byte(`{"commit":"` + id + `","tree":"x"}`))
	f.Add([]byte("null"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "note")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := readNote(path)
		if err != nil {
			if read.Commit != (object.ID{}) || strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("%q: %+v, %q", content, read, err)
			}
			return
		}
		keeper := &noteKeeper{path: path}
		if err := keeper.set(read); err != nil {
			t.Fatal(err)
		}
		again, err := readNote(path)
		if err != nil || again.Commit != read.Commit || again.Tree != read.Tree || (again.Next == nil) != (read.Next == nil) {
			t.Errorf("%q is read as %+v and again as %+v, %v", content, read, again, err)
		}
		if read.Next != nil && *again.Next != *read.Next {
			t.Errorf("%q has the move %+v and then %+v", content, *read.Next, *again.Next)
		}
		if read.Commit == (object.ID{}) && read.Next == nil && !strings.Contains(string(content), strings.Repeat("0", 40)) {
			t.Errorf("%q is read as nothing", content)
		}
	})
}
