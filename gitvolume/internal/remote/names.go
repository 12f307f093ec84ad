package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	// mostNames and mostNameBytes bound the refs that are fetched to find a commit in
	// them: a server may name any number of them.
	mostNames     = 100_000
	mostNameBytes = 16 << 20
)

// errTooManyNames says that a commit is not looked for in all that the remote has.
var errTooManyNames = errors.New("the remote has too many branches and tags to look for a commit in all of them")

// names are the remote's branches and tags, a line each, as refspecs that write no local
// ref. A name that means more than itself in a refspec is left out: with a colon in it
// the server would choose a ref of the store and overwrite it.
func (c *Command) names(ctx context.Context, remote Remote) (string, error) {
	var names strings.Builder
	count := 0
	err := c.lines(ctx, remote, func(line []byte) error {
		_, name, found := bytes.Cut(line, []byte("\t"))
		if !found {
			return fmt.Errorf("%q: %w", line, errListing)
		}
		if !isPlain(name) {
			return nil
		}
		count++
		if count > mostNames || names.Len()+len(name) > mostNameBytes {
			return errTooManyNames
		}
		names.Write(name)
		names.WriteByte('\n')
		return nil
	}, "--heads", "--tags", "--refs")
	return names.String(), err
}

// isPlain tells whether a refspec that is the name means that ref and nothing else. git
// would take a carriage return, which no ref's name has, for a part of the line's end.
func isPlain(name []byte) bool {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return checkRef(string(name)) == nil && !bytes.ContainsFunc(name, control)
}
