// Package access is one repository elsewhere and as whom it is asked: it brings together a
// URL, the credential that a volume has at the moment, and the git that goes there.
//
// It must never ask a remote as anybody but the credential that was given last, and never
// as nobody because a credential is missing.
package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
)

// ErrNoCredential says that nothing can be asked yet: after a restart of the driver the
// credential comes with the next publish.
var ErrNoCredential = errors.New("the credential is not there yet")

// Settings say which repository is asked, and by what.
type Settings struct {
	Command *remote.Command
	Fetches *remote.Fetches
	URL     attributes.URL
	// Dir is the store's repository of that URL, and Depth how many commits of a ref are
	// fetched; 0: all.
	Dir   string
	Depth int
	// Permit refuses addresses; nil permits all. Limits is another where it refuses others.
	Permit remote.Permit
	Limits string
	// Slots bound background work, that of Fetches too.
	Slots *remote.Slots
	// Serving says how a credential is lent; its URL is set here.
	Serving credential.Serving
	// Key makes digests of credentials that tell nobody else anything.
	Key []byte
	// Hold has the repository of Dir be there, and stay, while it is fetched in the background,
	// of which nobody knows when it begins; nil: it is there.
	Hold func(ctx context.Context) (release func(), err error)
	// Observe is told of each fetch that is made for several or one, and LookFailed of each
	// look at the remote that failed; nil: nobody is.
	Observe    func(took time.Duration, err error)
	LookFailed func()
}

// Access is a repository elsewhere. It may be used by many goroutines.
type Access struct {
	settings Settings

	mu         sync.Mutex
	credential *credential.Credential
	// since is when what is fetched was wanted first; zero: just now.
	since time.Time
}

// New has no credential yet.
func New(settings Settings) *Access {
	settings.Serving.URL = settings.URL
	return &Access{settings: settings}
}

// Take has another credential count from now on, and tells whether it is another.
func (a *Access) Take(c *credential.Credential) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = a.credential == nil || !a.credential.Equal(c)
	a.credential = c
	return changed
}

// Drop forgets the credential.
func (a *Access) Drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.credential = nil
}

// HasCredential tells whether the remote can be asked at all.
func (a *Access) HasCredential() bool {
	_, err := a.current()
	return err == nil
}

// current is the credential that counts now.
func (a *Access) current() (*credential.Credential, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.credential == nil {
		return nil, ErrNoCredential
	}
	return a.credential, nil
}

// Fetch brings refs, by their full names, to the refs of the store that they map to. It
// may join a fetch that runs already.
func (a *Access) Fetch(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error) {
	return a.fetch(ctx, refs, urgency, a.settings.Fetches.Fetch)
}

// FetchAnew is Fetch of what the remote has from now on.
func (a *Access) FetchAnew(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error) {
	return a.fetch(ctx, refs, urgency, a.settings.Fetches.FetchAnew)
}

// mostBegun is for how long something may have begun: what was fetched before is too old then.
const mostBegun = 3 * time.Minute

// Begin says that something begins that has to have what the remote has from now on, which
// several calls may have to work at: what Fetch brought for one of them, it need not bring
// for the next. It does nothing if that began already, and was not given up.
func (a *Access) Begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.since) > mostBegun {
		a.since = time.Now()
	}
}

// Done says that what began is done, or is to begin anew.
func (a *Access) Done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Time{}
}

func (a *Access) fetch(ctx context.Context, refs map[string]string, urgency remote.Urgency,
	by func(context.Context, remote.Demand) (map[string]remote.Fetched, error),
) (map[string]remote.Fetched, error) {
	c, err := a.current()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	since := a.since
	a.mu.Unlock()
	var hold func(context.Context) (func(), error)
	if urgency == remote.Background {
		hold = a.settings.Hold
	}
	return by(ctx, remote.Demand{
		Request: remote.Request{
			Dir: a.settings.Dir, Depth: a.settings.Depth, Refs: refs,
			Remote: remote.Remote{URL: a.settings.URL, Permit: a.settings.Permit, Limits: a.settings.Limits},
		},
		Credential: &lent{access: a, credential: c}, Urgency: urgency, Hold: hold, Since: since, Observe: a.settings.Observe,
	})
}

// Turn waits for one of the slots of background work, in which its holder may do anything
// with the remote that is for a push, until within ends. It gives up with ctx; release is told
// how the work ended.
func (a *Access) Turn(ctx context.Context) (within context.Context, release func(error), err error) {
	return a.settings.Slots.Take(ctx, a.settings.URL, remote.Pushing)
}

// Look reads the remote's refs that the names could mean. It may join a look that runs already.
func (a *Access) Look(ctx context.Context, names ...string) (*remote.Refs, error) {
	return a.look(ctx, names, a.settings.Command.Looks().Look)
}

// LookAnew is Look at what the remote has from now on.
func (a *Access) LookAnew(ctx context.Context, names ...string) (*remote.Refs, error) {
	return a.look(ctx, names, a.settings.Command.Looks().LookAnew)
}

// List is LookAnew, by the name of a Command's.
func (a *Access) List(ctx context.Context, names ...string) (*remote.Refs, error) {
	return a.LookAnew(ctx, names...)
}

func (a *Access) look(ctx context.Context, names []string,
	by func(context.Context, remote.Glance) (*remote.Refs, error),
) (*remote.Refs, error) {
	c, err := a.current()
	if err != nil {
		return nil, err
	}
	return by(ctx, remote.Glance{
		Remote:     remote.Remote{URL: a.settings.URL, Permit: a.settings.Permit, Limits: a.settings.Limits},
		Credential: &lent{access: a, credential: c}, Names: names, Failed: a.settings.LookFailed,
	})
}

// Push moves the branch and with it the metadata.
func (a *Access) Push(ctx context.Context, branch remote.Update, metadata *remote.Update) (pushed remote.Pushed, err error) {
	err = a.with(func(r remote.Remote) error {
		pushed, err = a.settings.Command.Push(ctx, remote.Push{Dir: a.settings.Dir, Remote: r, Branch: branch, Metadata: metadata})
		return err
	})
	return pushed, err
}

// DeleteBranch deletes a ref of the remote if it is still at the tip.
func (a *Access) DeleteBranch(ctx context.Context, ref string, tip object.ID) error {
	return a.with(func(r remote.Remote) error {
		return a.settings.Command.DeleteBranch(ctx, a.settings.Dir, r, ref, tip)
	})
}

// with does something as the credential that counts now.
func (a *Access) with(do func(r remote.Remote) error) error {
	c, err := a.current()
	if err != nil {
		return err
	}
	session, err := c.Serve(a.settings.Serving)
	if err != nil {
		return fmt.Errorf("serve the credential: %w", err)
	}
	defer session.Close()
	return do(remote.Remote{URL: a.settings.URL, Session: session, Permit: a.settings.Permit, Limits: a.settings.Limits})
}

// lent is a credential as a fetch wants it.
type lent struct {
	access     *Access
	credential *credential.Credential
}

// Identity implements remote.Credential.
func (l *lent) Identity() [32]byte { return l.credential.Identity(l.access.settings.Key) }

// Open implements remote.Credential.
func (l *lent) Open() (remote.Session, func(), error) {
	session, err := l.credential.Serve(l.access.settings.Serving)
	if err != nil {
		return nil, nil, fmt.Errorf("serve the credential: %w", err)
	}
	return session, session.Close, nil
}
