package remote

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestARefThatIsMadeMeanwhile is there only when it is looked for after the fetch, as the
// metadata of the first of many writers is.
func TestARefThatIsMadeMeanwhile(t *testing.T) {
	b, store := gittest.NewBare(t), gittest.NewBare(t)
	tip := b.Grow("main", "f", "1")
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
