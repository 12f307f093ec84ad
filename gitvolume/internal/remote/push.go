package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/object"
)

// Push is what to push, and from which repository.
type Push struct {
	// Dir is the bare repository that holds the tips.
	Dir    string
	Remote Remote
	Branch Update
	// Metadata goes with the branch, never before it or alone; nil if there is nothing of
	// it to push.
	Metadata *Update
	// Progress, if not nil, is called from another goroutine.
	Progress func(Progress)
}

// Update is one ref of the remote that is to move.
type Update struct {
	// Ref is the full name.
	Ref string
	// Tip is the commit it is to name.
	Tip object.ID
	// Expected is where the ref was when Tip was built on it; zero: it did not exist.
	Expected object.ID
}

// Pushed is what became of a push whose branch arrived.
type Pushed struct {
	// Metadata is nil if the metadata arrived too, or there was none; else a Moved, a
	// Declined, or any other error of a push.
	Metadata error
}

// Push moves the branch and with it the metadata. The remote's refs are left as they are
// unless each is where it is expected: the remote itself compares, so that neither a
// commit that was pushed meanwhile nor a branch that was taken back or deleted is
// overwritten. The error is a Moved, a Declined, an Unknown, or has one of the kinds of a
// Failure; then the branch was not pushed, except that with Unknown it may have been.
func (c *Command) Push(ctx context.Context, push Push) (Pushed, error) {
	if err := c.contains(ctx, push.Dir, push.Branch); err != nil {
		return Pushed{}, fmt.Errorf("push: %w", err)
	}
	if err := c.metadataAhead(ctx, push); err != nil {
		// What is wrong with the record must not keep the user's commits from the remote.
		push.Metadata = nil
		if _, failed := c.pushSingly(ctx, push); failed != nil {
			return Pushed{}, failed
		}
		return Pushed{Metadata: fmt.Errorf("push the metadata: %w", err)}, nil
	}
	if push.Metadata == nil || c.takesSingly(push.Remote.URL) {
		return c.pushSingly(ctx, push)
	}
	failed := c.attempt(ctx, push, push.Branch, *push.Metadata)
	if failed == nil {
		return Pushed{}, nil
	}
	refs, err := c.look(ctx, push, failed, push.Branch.Ref, push.Metadata.Ref)
	if err != nil {
		return Pushed{}, fmt.Errorf("push: %w", err)
	}
	if refs.Tip(push.Branch.Ref) != push.Branch.Tip {
		if err := judge(refs, push.Branch, failed); !isOfTwo(err) {
			return Pushed{}, fmt.Errorf("push: %w", err)
		}
	}
	// The metadata alone may have been refused, or the remote takes no two refs at once.
	pushed, err := c.pushSingly(ctx, push)
	if err == nil && pushed.Metadata == nil && refs.Tip(push.Branch.Ref) == push.Branch.Expected {
		c.rememberSingly(push.Remote.URL)
	}
	return pushed, err
}

// DeleteBranch deletes a ref of the remote if it is still at the tip. That it is gone
// already is no error; elsewhere it is a Moved.
func (c *Command) DeleteBranch(ctx context.Context, dir string, remote Remote, ref string, tip object.ID) error {
	if err := checkRef(ref); err != nil || tip.IsZero() {
		return fmt.Errorf("delete the remote's branch %q at %s: %w", ref, tip, errors.Join(errNoUpdate, err))
	}
	push := Push{Dir: dir, Remote: remote}
	if err := c.pushOne(ctx, push, Update{Ref: ref, Expected: tip}); err != nil {
		return fmt.Errorf("delete the remote's branch: %w", err)
	}
	return nil
}

// pushSingly pushes the branch, and after it the metadata.
func (c *Command) pushSingly(ctx context.Context, push Push) (Pushed, error) {
	if err := c.pushOne(ctx, push, push.Branch); err != nil {
		return Pushed{}, fmt.Errorf("push: %w", err)
	}
	if push.Metadata == nil {
		return Pushed{}, nil
	}
	if err := c.pushOne(ctx, push, *push.Metadata); err != nil {
		return Pushed{Metadata: fmt.Errorf("push the metadata: %w", err)}, nil
	}
	return Pushed{}, nil
}

// pushOne pushes one ref and finds out what became of it.
func (c *Command) pushOne(ctx context.Context, push Push, update Update) error {
	failed := c.attempt(ctx, push, update)
	if failed == nil {
		return nil
	}
	refs, err := c.look(ctx, push, failed, update.Ref)
	if err != nil {
		return err
	}
	return judge(refs, update, failed)
}

// singlyAge is how long a remote that refused two refs at once is not tried again: it may
// have refused for another reason, which has passed.
const singlyAge = time.Hour

func (c *Command) rememberSingly(url attributes.URL) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.singly[url.String()] = time.Now()
}

// takesSingly tells whether the remote was lately seen to refuse two refs at once and to
// take one after the other.
func (c *Command) takesSingly(url attributes.URL) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, found := c.singly[url.String()]
	if found && time.Since(seen) >= singlyAge {
		delete(c.singly, url.String())
		return false
	}
	return found
}

// attempt is one run of git push. A lease makes the remote compare each ref with what is
// expected of it, which a plain push does not: that would bring back commits which
// upstream took off its branch. It is no force, because Push has seen that each tip
// contains what it replaces.
func (c *Command) attempt(ctx context.Context, push Push, updates ...Update) error {
	atomic := "--no-atomic"
	if len(updates) > 1 {
		atomic = "--atomic"
	}
	args := []string{"push", "--porcelain", "--progress", atomic, "--no-verify", "--no-follow-tags", "--recurse-submodules=no"}
	var specs []string
	for _, update := range updates {
		args = append(args, "--force-with-lease="+update.Ref+":"+given(update.Expected))
		specs = append(specs, given(update.Tip)+":"+update.Ref)
	}
	_, err := c.do(ctx, run{
		args: append(append(args, "--", push.Remote.URL.String()), specs...),
		dir:  push.Dir, remote: &push.Remote, progress: push.Progress, verdicts: &verdicts{},
	})
	return err
}

// given is an id as push writes it: nothing for none.
func given(id object.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// look reads where the refs are after a push that failed, if it can have arrived.
func (c *Command) look(ctx context.Context, push Push, failed error, names ...string) (*Refs, error) {
	var failure *Failure
	switch {
	case !errors.As(failed, &failure) || failure.unsent:
		return nil, failed
	case errors.Is(failed, ErrAuthentication) && failure.HTTPStatus != statusForbidden:
		return nil, failed
	case errors.Is(failed, ErrIdentity) || errors.Is(failed, ErrRefusedAddress):
		return nil, failed
	}
	refs, err := c.List(ctx, push.Remote, names...)
	if err != nil {
		return nil, &Unknown{Push: failed, Look: err}
	}
	return refs, nil
}

// judge tells what became of a push from where the ref is after it; nil if it arrived.
func judge(refs *Refs, update Update, failed error) error {
	var failure *Failure
	tip := refs.Tip(update.Ref)
	switch {
	case tip == update.Tip:
		return nil // Only the answer was lost.
	case tip != update.Expected:
		return &Moved{Ref: update.Ref, Tip: tip}
	case errors.Is(failed, ErrUnreachable) || errors.Is(failed, ErrStalled) || !errors.As(failed, &failure) || !failure.refused:
		return failed
	}
	return &Declined{Ref: update.Ref, Words: failure.Words, After: failure.After}
}

// isOfTwo tells whether a push of two refs may have failed because there were two: one of
// them is declined, or git gave up since the remote takes no two at once.
func isOfTwo(err error) bool {
	var failure *Failure
	if errors.As(err, &failure) {
		return !failure.killed && !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrStalled)
	}
	return isDeclined(err)
}

func isDeclined(err error) bool {
	var declined *Declined
	return errors.As(err, &declined)
}

// errNoUpdate says that a ref cannot be pushed as it is asked for.
var errNoUpdate = errors.New("it is nothing to push")

// checkRef takes full names that mean themselves to git push, and nothing else to it.
func checkRef(ref string) error {
	if !strings.HasPrefix(ref, "refs/") || strings.ContainsAny(ref, ":*^?[\\~ \n\x00") {
		return fmt.Errorf("%q is no full name of a ref", ref)
	}
	return nil
}
