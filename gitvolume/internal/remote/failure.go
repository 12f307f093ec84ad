package remote

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// What can become of a run, for a caller to decide on. They are told from facts:
// connections that were made or not, what HTTP or ssh gave as status, whether the
// credential was asked for. A Failure wraps exactly one of them, or the context's error
// when the caller gave up.
var (
	// ErrUnreachable says that the remote could not be talked to: no connection, one
	// that was lost, or a service that says it is not available.
	ErrUnreachable = errors.New("the remote cannot be reached")
	// ErrStalled says that the connection carried nothing for too long.
	ErrStalled = errors.New("the remote sends nothing")
	// ErrTimeout says that the run took longer than it may; ErrTurnOver is one.
	ErrTimeout = errors.New("the remote takes too long")
	// ErrAuthentication says that the remote does not let the credential, or nobody
	// without one, do this.
	ErrAuthentication = errors.New("the remote refuses the credential")
	// ErrIdentity says that the connection was given up because the server did not
	// prove who it is: ssh's host key, or the certificate of TLS.
	ErrIdentity = errors.New("the remote does not prove its identity")
	// ErrRefusedAddress says that the host has no address that may be connected to.
	ErrRefusedAddress = errors.New("the remote's address is refused")
	// ErrNoRepository says that the server has no such repository, or none to show to
	// this credential: servers do not tell these apart. One of git's own protocol has only
	// prose for it, which is ErrFailed.
	ErrNoRepository = errors.New("the remote has no such repository, or does not show it to this credential")
	// ErrNoRef says that the remote has no ref of a name.
	ErrNoRef = errors.New("the remote has no such ref")
	// ErrNoRoom says that a fetch was ended for want of room: it wraps what Settings.Room
	// said.
	ErrNoRoom = errors.New("the remote sends more than there is room for")
	// ErrFailed says that the remote, or git itself, failed in another way.
	ErrFailed = errors.New("git failed")
)

// IsRemote tells of the errors that the remote or the way to it causes, whatever the
// repository here is like. ErrFailed is none, as nobody knows whose failure it was, and
// neither is ErrNoRef: of that the remote is in good health.
func IsRemote(err error) bool {
	return IsSilence(err) || errors.Is(err, ErrAuthentication) || errors.Is(err, ErrIdentity) ||
		errors.Is(err, ErrRefusedAddress) || errors.Is(err, ErrNoRepository) || errors.Is(err, ErrNoRoom)
}

// IsSilence tells of the errors of a remote that did not answer, which say nothing about
// what it has and what it would let the credential do.
func IsSilence(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrStalled) || errors.Is(err, ErrTimeout)
}

// Failure is a run of git that did not do what it was for.
type Failure struct {
	// Kind is one of the errors above, or that of a context.
	Kind error
	// Words are what git and the remote said: quoted, without control characters, and cut.
	Words string
	// After is how long the remote wants to be left alone; 0 if it did not say.
	After time.Duration
	// Cause is what the driver itself saw, such as a connection that was refused; or nil.
	Cause error
	// HTTPStatus is that of the last answer, or 0.
	HTTPStatus int
	// unsent tells that the remote was never connected to.
	unsent bool
	// refused tells that the remote itself refused what was to be pushed, and killed that a
	// signal ended git.
	refused, killed bool
	// received is how many bytes came from the remote.
	received int64
}

// Error has all of it.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Kind.Error())
	if f.Cause != nil {
		fmt.Fprintf(&b, ": %v", f.Cause)
	}
	if f.Words != "" {
		fmt.Fprintf(&b, ": git said %s", f.Words)
	}
	return b.String()
}

// Unwrap gives the kind and the cause.
func (f *Failure) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.Cause}
}

// MissingRef is the error of a name that is no ref of the remote; it is ErrNoRef.
type MissingRef struct {
	Name string
	// Empty tells that the remote has no ref at all.
	Empty bool
	// IsTag tells that a branch was asked for, and that there is a tag of that name.
	IsTag bool
	// Exist are some of the names that the remote has; of a branch, those of branches.
	Exist []string
}

// Error names what there is instead.
func (m *MissingRef) Error() string {
	if m.Empty {
		return fmt.Sprintf("%v: %q, because the repository is empty", ErrNoRef, m.Name)
	}
	text := fmt.Sprintf("%v: %q", ErrNoRef, m.Name)
	if m.IsTag {
		text += "; that is the name of a tag, and a branch is wanted"
	}
	if len(m.Exist) > 0 {
		text += "; there are " + strings.Join(m.Exist, ", ")
	}
	return text
}

// Unwrap gives ErrNoRef.
func (m *MissingRef) Unwrap() error { return ErrNoRef }

// Moved says that a ref of the remote is not where the push was built on.
type Moved struct {
	Ref string
	// Tip is where it is; zero when it is gone.
	Tip object.ID
}

// Error says where the ref is now.
func (m *Moved) Error() string {
	if m.Tip.IsZero() {
		return fmt.Sprintf("%s is gone from the remote", m.Ref)
	}
	return fmt.Sprintf("%s of the remote moved to %s", m.Ref, m.Tip)
}

// Declined says that the remote refused a ref although it has not moved: a hook, a
// protected branch, a quota, a credential that may only read. A push that merely ended
// without having moved it is none.
type Declined struct {
	Ref string
	// Words are what the remote said: quoted, without control characters, and cut.
	Words string
	// After is how long the remote wants to be left alone; 0 if it did not say.
	After time.Duration
}

// Error has the remote's words.
func (d *Declined) Error() string {
	if d.Words == "" {
		return fmt.Sprintf("the remote declines %s and does not say why", d.Ref)
	}
	return fmt.Sprintf("the remote declines %s: git said %s", d.Ref, d.Words)
}

// Unknown says that it cannot be told whether a push arrived: the connection was lost
// and the remote's tips could not be read after it.
type Unknown struct {
	// Push is what became of the push, and Look of the look at the tips.
	Push, Look error
}

// Error has both failures.
func (u *Unknown) Error() string {
	return fmt.Sprintf("whether the push arrived is unknown: %v; reading the remote's tips: %v", u.Push, u.Look)
}

// Unwrap gives both failures.
func (u *Unknown) Unwrap() []error { return []error{u.Push, u.Look} }
