package remote

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HTTP's status of what the credential may not do.
const statusForbidden = 403

// longestHandshake is more than an ssh server sends until the client has seen its host
// key, be it a large one with a certificate.
const longestHandshake = 16 << 10

// errWithoutWord is what a server of git's own protocol can do about a repository that it
// does not have; one that fails does the same.
var errWithoutWord = errors.New("the server closed the connection without a word, as some do when there is no such repository")

// facts are what is known of a run, by which its failure gets a kind.
type facts struct {
	dials, connected int
	unreached        error // why the last connection that was not made was not
	refused          error // why an address was not connected to
	received         int64 // bytes from the remote
	serverEnded      bool  // in the last connection the remote ended first, unasked
	sshStatus        int   // -1: ssh did not end by itself
	asked            bool  // the remote wanted a credential, and there was none
	requested        bool  // an HTTP request was sent
	asking           bool  // and since then no proxy was asked for a connection
	httpStatus       int   // of the answer to the last request; 0: none
	speaksGit        bool  // an HTTP answer was of git's own type
	proxyStatus      int   // of the last answer of a proxy; 0: none
	retryAfter       time.Duration
	stalled          bool
	undecided        bool // a push was sent, and nobody said what became of it
	proxied          bool // the environment's proxy made the connections
}

// errUndecided says that a hook on the server does not end, or whatever else is there.
var errUndecided = errors.New("it keeps the connection, and does not say whether it takes what was pushed")

// kind tells what a failed run was, and what the driver saw of it.
func (f facts) kind(remote *Remote, err error) (kind, cause error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout, err
	case f.undecided:
		return ErrTimeout, errUndecided
	case err != nil:
		return err, nil
	case f.stalled:
		return ErrStalled, nil
	case remote == nil:
		return ErrFailed, nil
	case f.refused != nil:
		return ErrRefusedAddress, f.refused
	case f.asked || f.httpStatus == 401 || remote.Session != nil && remote.Session.Refused():
		return ErrAuthentication, nil
	case f.dials > 0 && f.connected == 0:
		return ErrUnreachable, f.unreached
	}
	switch remote.URL.Scheme {
	case "http", "https":
		return f.httpKind(remote.URL.Scheme)
	case "ssh":
		return f.sshKind(remote.Session), nil
	case "git":
		if f.received == 0 {
			return ErrUnreachable, errWithoutWord
		}
	case "file":
		return ErrNoRepository, nil
	}
	return ErrFailed, nil
}

func (f facts) httpKind(scheme string) (kind, cause error) {
	status := f.httpStatus
	if status != 0 && status/100 != 2 {
		cause = fmt.Errorf("the HTTP status is %d", status)
	}
	switch {
	case f.proxyStatus != 0 && f.proxyStatus/100 != 2:
		return ErrUnreachable, fmt.Errorf("the proxy's HTTP status is %d", f.proxyStatus)
	case !f.requested && scheme == "https" && f.spokeTLS() && !f.serverEnded:
		// curl gave up before it asked anything.
		return ErrIdentity, nil
	case status == 0 && f.dials > 0 || status == 0 && f.proxied:
		return ErrUnreachable, nil // The request has no answer.
	case status == statusForbidden:
		return ErrAuthentication, cause
	case status == 404 || status == 410:
		return ErrNoRepository, cause
	case status >= 500 || status == 408 || status == 429 || status == 407:
		return ErrUnreachable, cause
	case status/100 == 2 && f.serverEnded:
		return ErrUnreachable, nil // The connection was lost in the middle of an answer.
	}
	return ErrFailed, cause
}

// spokeTLS tells whether the remote answered to the connection at all. Of a proxy's
// connection it is only known that there was one.
func (f facts) spokeTLS() bool { return f.received > 0 || f.proxyStatus/100 == 2 }

func (f facts) sshKind(session Session) error {
	prover, proves := session.(Prover)
	switch {
	case f.sshStatus == 255 && (f.received == 0 || f.received > longestHandshake || f.serverEnded):
		return ErrUnreachable
	case f.sshStatus == 255 && proves && prover.Proven():
		// It signed, and that was not enough: the server wants more, or another account.
		return ErrAuthentication
	case f.sshStatus == 255:
		// ssh gave up first, and not for the credential.
		return ErrIdentity
	case f.sshStatus > 0:
		return ErrNoRepository
	}
	return ErrFailed
}
