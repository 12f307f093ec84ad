package remote

import (
	"errors"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

// A push whose hook does not end is given up, although the server keeps the connection alive.
// One whose hook tells what it does is not.
func TestUndecidedPush(t *testing.T) {
	for name, row := range map[string]struct {
		start func(testing.TB, *gittest.Bare) Remote
		hook  string
		want  error
	}{
		"ssh":           {overSSH, "sleep 10", errUndecided},
		"http":          {overHTTP, "sleep 10", errUndecided},
		"ssh, it tells": {overSSH, "for n in 1 2 3 4 5 6 7 8; do echo $n >&2; sleep 0.5; done", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := gittest.NewBare(t)
			b.Git("config", "receive.keepAlive", "1")
			b.Hook("pre-receive", row.hook)
			c := newCommand(t, func(s *Settings) { s.Decision = 3 * time.Second })
			p := newPushing(t, c, b, row.start(t, b))
			_, err := p.push(p.update("refs/heads/main", "1"), nil)
			if !errors.Is(err, row.want) || row.want != nil && !errors.Is(err, ErrTimeout) {
				t.Errorf("the error is %v, want %v", err, row.want)
			}
		})
	}
}
