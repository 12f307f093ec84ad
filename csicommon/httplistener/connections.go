package httplistener

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// connections bounds how many clients the listener holds: any pod of the cluster
// can reach a host port, and each connection costs the plugin some 90 KB. Above
// the bound one that idles is closed. Letting new ones wait instead would
// let a few clients that say nothing keep the kubelet's probe out, and the
// kubelet would then restart a plugin that is well.
type connections struct {
	limit int

	mu   sync.Mutex
	open []connection // oldest first
}

type connection struct {
	net.Conn
	idle bool // has had its answer and asked nothing since
}

// track is an http.Server's ConnState hook.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if len(c.open) >= c.limit {
			c.closeOne()
		}
		c.open = append(c.open, connection{Conn: conn})
	case http.StateActive, http.StateIdle:
		if i := c.find(conn); i >= 0 {
			c.open[i].idle = state == http.StateIdle
		}
	case http.StateClosed, http.StateHijacked:
		if i := c.find(conn); i >= 0 {
			c.open = slices.Delete(c.open, i, i+1)
		}
	}
}

// closeOne closes the oldest idle one, or the oldest of all when none is: a
// request takes milliseconds, so that one was most likely never sent whole.
func (c *connections) closeOne() {
	victim := max(0, slices.IndexFunc(c.open, func(o connection) bool { return o.idle }))
	_ = c.open[victim].Close() // its own goroutine sees the error and ends
	c.open = slices.Delete(c.open, victim, victim+1)
}

// find is -1 for one that was closed here.
func (c *connections) find(conn net.Conn) int {
	return slices.IndexFunc(c.open, func(o connection) bool { return o.Conn == conn })
}
