package remote

import (
	"maps"
	"os"
	"time"
)

// knownFor is how long it is known what a fetch brought.
const knownFor = 5 * time.Minute

// brought is what fetches have brought of late, for those whose call had to end before: by
// what they have in common, and the ref. It is Fetches.mu's.
type brought map[scope]map[string]bringing

// bringing is one ref that was brought.
type bringing struct {
	to      string
	fetched Fetched
	began   time.Time
	// into is the repository's directory; nil: there was none.
	into os.FileInfo
}

// note notes what was brought, and forgets what is old.
func (b brought) note(s scope, request Request, fetched map[string]Fetched, began time.Time) {
	for other, refs := range b {
		maps.DeleteFunc(refs, func(_ string, one bringing) bool { return began.Sub(one.began) > knownFor })
		if len(refs) == 0 {
			delete(b, other)
		}
	}
	if b[s] == nil {
		b[s] = map[string]bringing{}
	}
	into, _ := os.Lstat(request.Dir)
	for from, one := range fetched {
		b[s][from] = bringing{to: request.Refs[from], fetched: one, began: began, into: into}
	}
}

// since is what the demand wants, if fetches brought all of it that began after it was wanted
// first, into the repository that is still there.
func (b brought) since(s scope, d Demand, now time.Time) (map[string]Fetched, bool) {
	if d.Since.IsZero() || now.Sub(d.Since) > knownFor {
		return nil, false
	}
	there, _ := os.Lstat(d.Request.Dir)
	known := map[string]Fetched{}
	for from, to := range d.Request.Refs {
		one, found := b[s][from]
		isSame := there == nil && one.into == nil || there != nil && one.into != nil && os.SameFile(there, one.into)
		if !found || one.to != to || one.began.Before(d.Since) || !isSame {
			return nil, false
		}
		known[from] = one.fetched
	}
	return known, true
}
