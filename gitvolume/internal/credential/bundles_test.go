package credential

import (
	"os"
	"path/filepath"
	"testing"
)

// However many sessions trust the same, there is one file of it, until the last of them ends.
func TestOneBundleForAll(t *testing.T) {
	dir := shortDir(t)
	bundles := NewBundles(dir)
	first, second := certificate(t), certificate(t)
	open := func(token, ca string) *Session {
		t.Helper()
		s, err := mustParse(t, map[string]string{"token": token, "ca.crt": ca}).Serve(Serving{
			Dir: dir, Helper: helperCommand(t), URL: parseURL(t, "https://h/r"), Bundles: bundles,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	has := func(want int, sessions ...*Session) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, bundlePrefix+"*"))
		if err != nil || len(files) != want {
			t.Errorf("there are %q, %v, want %d", files, err, want)
		}
		for _, s := range sessions {
			if _, err := os.Stat(caFile(s)); err != nil {
				t.Errorf("a session has no certificates: %v", err)
			}
		}
	}
	a, b, c := open("one-token", first), open("another-token", first), open("one-token", second)
	has(2, a, b, c)
	if caFile(a) != caFile(b) || caFile(a) == caFile(c) {
		t.Errorf("the files are %q, %q and %q", caFile(a), caFile(b), caFile(c))
	}
	a.Close()
	a.Close() // A second one gives nothing up that is another's.
	has(2, b, c)
	c.Close()
	has(1, b)
	d := open("third-token", first)
	b.Close()
	has(1, d)
	d.Close()
	has(0)
}
