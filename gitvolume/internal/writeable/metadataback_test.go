package writeable_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What an application does to modes and empty directories on another node is so here as
// well, when it is back: with commits, and where no commit told of it.
func TestModesAndEmptyDirectoriesOfAnotherNode(t *testing.T) {
	for name, change := range map[string]func(there *node){
		"with a commit": func(there *node) { there.write("b", "2") },
		"without one":   func(*node) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.put("main", files{"a": "1", "b": "1"})
				here, there := w.node(), w.node()
				here.publish()
				for _, path := range []string{"gone/deep", "spool/empty", "used"} {
					here.do(os.MkdirAll(filepath.Join(here.tree(), path), 0o755))
				}
				here.watch.touch()
				here.settle(time.Minute)
				here.stop()

				there.publish()
				for _, path := range []string{"gone/deep", "gone", "spool/empty", "used"} {
					there.do(os.Remove(filepath.Join(there.tree(), path)))
				}
				there.chmod("a", 0o600)
				change(there)
				there.settle(time.Minute)
				there.stop()
				record := w.record()

				// What is not committed stays.
				here.do(os.WriteFile(filepath.Join(here.tree(), "used", "x.tmp"), nil, 0o644))
				here.arming = armed(map[string]string{"ignore": "*.tmp"})
				here.publish()
				here.modeIs("a", 0o600)
				for path, stays := range map[string]bool{"gone": false, "spool": true, "spool/empty": false, "used": true} {
					if _, err := os.Lstat(filepath.Join(here.tree(), path)); (err == nil) != stays {
						t.Errorf("%s: %v, want that it stays: %t", path, err, stays)
					}
				}
				here.settle(time.Minute)
				here.faultsAre()
				here.stop()
				if got := w.record(); strings.Contains(got, "gone") || strings.Contains(got, "spool/empty") {
					t.Errorf("the record was\n%s\nand is\n%s", record, got)
				}
			})
		})
	}
}
