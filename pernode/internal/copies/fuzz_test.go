package copies

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/quote"
)

// A hold of any bytes is read or is none, and what is written is read as it was.
func FuzzHold(f *testing.F) {
	f.Add([]byte(`{"podUID":"u","podNamespace":"n","podName":"p","target":"/t","readOnly":true,"pv":"v"}`))
	f.Add([]byte(`{"target":"` + "\x1b" + `"}`))
	f.Add([]byte("null"))
	f.Add([]byte(`{"podName":7}`))
	f.Add([]byte("{}{}"))
	dir, err := os.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = dir.Close() })
	s := &Store{holds: dir, stamps: map[string]stamp{}, config: Config{Log: slog.New(slog.DiscardHandler)}}
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(filepath.Join(dir.Name(), "v"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		hold, readable := s.Hold("v")
		if !readable && hold != (Hold{}) {
			t.Errorf("%q is none, and %+v", content, hold)
		}
		if !readable {
			return
		}
		s.writeHold("v", hold)
		again, readable := s.Hold("v")
		if len(content) < longestFile/8 && (!readable || again != hold) {
			t.Errorf("%q is read as %+v and again as %+v, %t", quote.Value(string(content)), hold, again, readable)
		}
		_ = (&HeldError{Volume: "v", Hold: hold}).Error()
	})
}
