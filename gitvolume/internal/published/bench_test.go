package published_test

import (
	"maps"
	"testing"
)

// A repeated publish: the one call of a node that comes for each volume every minute.
func BenchmarkRepublish(b *testing.B) {
	n := newNode(b)
	p := n.claimed("pv", "a", urlOf(remoteWith(b, "1")))
	for name, secret := range map[string]map[string]string{
		"without a Secret": nil,
		"with a Secret": {
			"ssh-privatekey": string(make([]byte, 411)), "known_hosts": string(make([]byte, 800)),
		},
	} {
		p.published()
		n.volumes.Republish("pv", p.target, maps.Clone(secret))
		b.Run(name, func(b *testing.B) {
			given := maps.Clone(secret)
			for b.Loop() {
				if !n.volumes.Republish("pv", p.target, given) {
					b.Fatal("it is no repeated publish")
				}
			}
		})
	}
}
