package published_test

import (
	"maps"
	"testing"
)

// A repeated publish: the one call of a node that comes for each volume every minute. It
// has to cost 2 µs at most, and to ask nobody but the memory.
func BenchmarkRepublish(b *testing.B) {
	n := newNode(b)
	remote := remoteWith(b, "1")
	for kind, p := range map[string]*pod{
		"a volume that is read":    n.claimed("pv", "a", urlOf(remote)),
		"a volume that is written": n.writer("written", "b", urlOf(remote)).armed().staged(nil),
	} {
		p.published()
		for name, secret := range map[string]map[string]string{
			"without a Secret": nil,
			"with a Secret": {
				"ssh-privatekey": string(make([]byte, 411)), "known_hosts": string(make([]byte, 800)),
			},
		} {
			p.again(secret)
			b.Run(kind+", "+name, func(b *testing.B) {
				given := maps.Clone(secret)
				for b.Loop() {
					p.again(given)
				}
			})
		}
	}
}

// again is a repeated publish with a Secret.
func (p *pod) again(secret map[string]string) {
	if !p.n.volumes.Republish(p.wish.Handle, p.target, p.isReadOnly(), secret) {
		p.n.t.Fatal("it is no repeated publish")
	}
}
