//go:build soak

package soak

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// reader is a read-only volume.
type reader struct {
	*seat
	reads int
}

// use is the life of one pod: a file that upstream replaces all the time is always there,
// and always whole.
func (r *reader) use(ctx context.Context) {
	root := r.target()
	for ctx.Err() == nil {
		content, err := os.ReadFile(filepath.Join(root, alwaysPath))
		switch {
		case err != nil:
			r.findings.add("a reader finds of %s: %v", alwaysPath, err)
		case !isSealed(string(content)):
			r.findings.add("a reader finds of %s what was never there: %.100q", alwaysPath, content)
		}
		r.reads++
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(5+r.random.IntN(60)) * time.Millisecond):
		}
	}
}
