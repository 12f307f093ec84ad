package remote

import "context"

// endReason is why a context has ended: its cause, of which the two that Go gives itself
// are told in words about the work. They are still the same errors to who compares them.
func endReason(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch cause {
	case context.DeadlineExceeded: //nolint:errorlint // Others that wrap these have words of their own.
		return &reworded{words: "its time is over", err: cause}
	case context.Canceled:
		return &reworded{words: "it was called off", err: cause}
	}
	return cause
}

// reworded is an error that is told in other words.
type reworded struct {
	words string
	err   error
}

func (r *reworded) Error() string { return r.words }
func (r *reworded) Unwrap() error { return r.err }
