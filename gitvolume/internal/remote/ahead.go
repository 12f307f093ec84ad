package remote

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/object"
)

// ErrNotAhead says that a tip does not contain what it is to replace: pushing it would
// take commits out of a branch, which is never done.
var ErrNotAhead = errors.New("the tip does not contain the commit it is to replace")

// metadataAhead sees to it that a push only adds to the metadata that it replaces. That is
// the driver's own ref; if somebody put on it what is no commit, that may be replaced.
func (c *Command) metadataAhead(ctx context.Context, push Push) error {
	if push.Metadata == nil {
		return nil
	}
	err := c.contains(ctx, push.Dir, *push.Metadata)
	if !errors.Is(err, ErrNotAhead) {
		return err
	}
	kind := ""
	lines := &lineReader{longest: longestRef, line: func(line []byte) error {
		kind = string(line)
		return nil
	}}
	_, typeErr := c.do(ctx, run{
		args: []string{"cat-file", "-t", push.Metadata.Expected.String()}, dir: push.Dir, stdout: lines,
	})
	if typeErr != nil || kind == "commit" {
		return errors.Join(err, typeErr)
	}
	return nil
}

// contains tells whether the tip contains what is expected: ErrNotAhead if not.
func (c *Command) contains(ctx context.Context, dir string, update Update) error {
	if err := checkRef(update.Ref); err != nil {
		return fmt.Errorf("%w: %w", errNoUpdate, err)
	}
	if update.Tip.IsZero() {
		return fmt.Errorf("%s has no tip: %w", update.Ref, errNoUpdate)
	}
	if update.Expected.IsZero() || update.Expected == update.Tip {
		return nil
	}
	e, err := c.do(ctx, run{
		args: []string{"merge-base", "--is-ancestor", update.Expected.String(), update.Tip.String()}, dir: dir,
	})
	if err != nil && (e.status == notAncestor || e.status == noCommit && c.has(ctx, dir, update.Tip)) {
		return fmt.Errorf("%s: %s is not in %s: %w", update.Ref, update.Expected, update.Tip, ErrNotAhead)
	}
	return err
}

// The statuses of git merge-base --is-ancestor.
const (
	notAncestor = 1
	noCommit    = 128 // one of the two is no commit, or not there
)

// has tells whether the repository has the object.
func (c *Command) has(ctx context.Context, dir string, id object.ID) bool {
	_, err := c.do(ctx, run{args: []string{"cat-file", "-e", id.String()}, dir: dir})
	return err == nil
}
