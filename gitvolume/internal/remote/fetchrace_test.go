package remote

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestARefThatIsMadeMeanwhile is there only when it is looked for after the fetch, as a ref
// may be that was deleted and is made again. Both were fetched before, so that they are not
// looked for first.
func TestARefThatIsMadeMeanwhile(t *testing.T) {
	b, store := gittest.NewBare(t), gittest.NewBare(t)
	tip := b.Grow("main", "f", "1")
	before := store.Commit(map[string]string{"f": "0"})
	store.SetRef("refs/x/1", before)
	store.SetRef("refs/x/2", before)
	var looks atomic.Int32
	remote := httpRemote(t, b, gittest.HTTPOptions{User: "git", Around: around(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/info/refs") && looks.Add(1) == 2 {
			b.SetRef(metadataRef, tip)
		}
		return false
	})})
	fetched, err := newCommand(t).Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{
		"refs/heads/main": "refs/x/1", metadataRef: "refs/x/2",
	}})
	check(t, err)
	if fetched["refs/heads/main"].Commit.String() != tip || fetched[metadataRef].Commit.String() != tip {
		t.Errorf("%+v", fetched)
	}
}

// TestRefsThatWereNeverHere are looked for before the fetch, which brings those that there
// are by one more connection.
func TestRefsThatWereNeverHere(t *testing.T) {
	for name, makes := range map[string]bool{"one is missing": false, "all are there": true} {
		t.Run(name, func(t *testing.T) {
			b, store := gittest.NewBare(t), gittest.NewBare(t)
			tip := b.Grow("main", "f", "1")
			if makes {
				b.SetRef(metadataRef, tip)
			}
			var looks atomic.Int32
			remote := httpRemote(t, b, gittest.HTTPOptions{User: "git", Around: around(func(_ http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/info/refs") {
					looks.Add(1)
				}
				return false
			})})
			fetched, err := newCommand(t).Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{
				"refs/heads/main": "refs/x/1", metadataRef: "refs/x/2",
			}})
			check(t, err)
			if fetched["refs/heads/main"].Commit.String() != tip || fetched[metadataRef].Gone == makes {
				t.Errorf("%+v", fetched)
			}
			if looks.Load() != 2 {
				t.Errorf("%d connections, want one to look and one to fetch", looks.Load())
			}
		})
	}
}
