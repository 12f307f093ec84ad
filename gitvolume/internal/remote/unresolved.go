package remote

import (
	"errors"
	"fmt"
	"net"
)

// unresolvedError is why a host's name has no address. Go's own words have the port that
// the resolver was asked from, another one each time: a message must be the same for the
// same outage.
type unresolvedError struct {
	host, why string
	err       error
}

func (e *unresolvedError) Error() string { return fmt.Sprintf("%q: %s", e.host, e.why) }

func (e *unresolvedError) Unwrap() error { return e.err }

// unresolved says what became of the look-up of a host; an error that is not the
// resolver's stays as it is.
func unresolved(host string, err error) error {
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		return err
	}
	why := "the resolver cannot be reached, or fails"
	switch {
	case dns.IsNotFound:
		why = "no such host"
	case dns.IsTimeout:
		why = "the resolver does not answer in time"
	}
	return &unresolvedError{host, why, err}
}
