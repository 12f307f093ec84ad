package storedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of a store of any bytes open it or say in words what they hold; what opens knows
// its format and one cluster, or none, or that it has lost it.
func FuzzStoreFiles(f *testing.F) {
	f.Add([]byte("2\n"), []byte("none\n"))
	f.Add([]byte("3"), []byte("uid"))
	f.Add([]byte("-1"), []byte(""))
	f.Add([]byte("99999999999999999999"), []byte("a\nb"))
	f.Add([]byte("+1"), []byte(strings.Repeat("x", longestFile+1)))
	f.Add([]byte("\x1b[2J\xff"), []byte("\x00"))
	f.Fuzz(func(t *testing.T, format, cluster []byte) {
		dir := t.TempDir()
		for name, content := range map[string][]byte{formatFile: format, clusterFile: cluster} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(layout(dir))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x00\x1b\n") {
				t.Errorf("%q: %q", format, err)
			}
			return
		}
		defer s.Close()
		uid, err := s.Cluster()
		if (err == nil || uid != "") && (len(cluster) > longestFile || strings.TrimSpace(string(cluster)) == "") {
			t.Errorf("%q is the cluster %q, %v", cluster, uid, err)
		}
		if err == nil && uid != "" && uid != strings.TrimSpace(string(cluster)) {
			t.Errorf("%q is the cluster %q", cluster, uid)
		}
	})
}
