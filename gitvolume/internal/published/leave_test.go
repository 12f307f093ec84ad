package published_test

import (
	"errors"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/published"
)

// A call that waits for a remote which sends nothing is answered as the process is to end,
// and no Event tells of that. A call that comes then does not wait at all, and one that
// takes a volume away is done to its end.
func TestLeave(t *testing.T) {
	for name, call := range map[string]func(n *node, url string) error{
		"a first publish to read":  func(n *node, url string) error { return n.claimed("slow", "b", url).publish() },
		"a first publish to write": func(n *node, url string) error { return n.writer("slow", "b", url).publish() },
		"a stage":                  func(n *node, url string) error { return n.writer("slow", "b", url).stage(right) },
	} {
		t.Run(name, func(t *testing.T) {
			b, silent := remoteWith(t, "1"), gittest.Silent(t)
			n, url := newNodeOverHTTP(t), "http://"+silent.Address+"/r"
			p := n.writer("pv", "a", urlOf(b)).armed().published().write("g", "1")
			answered := make(chan error, 1)
			go func() { answered <- call(n, url) }()
			until(t, "the remote is asked", func() bool { return silent.Accepted() > 0 })
			n.volumes.Leave()
			for what, err := range map[string]error{"the call that waits": <-answered, "a later one": call(n, url)} {
				if !errors.Is(err, published.ErrTooEarly) {
					t.Errorf("%s: %v, want ErrTooEarly", what, err)
				}
			}
			if got := n.posts.has("Pod/pod-b "); got != 0 {
				t.Errorf("there are Events of it: %q", n.posts.all)
			}
			p.unpublish()
			arrives(t, b, "g", "1")
		})
	}
}
