package server

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// calls counts the handlers that run, so that a stop can wait for them alone.
// gRPC's own graceful stop also waits for whoever only connected, or sent half a
// request: such a client would keep a plugin from ending until it is killed.
type calls struct {
	mu      sync.Mutex
	running int
	ending  bool
	none    chan struct{} // closed when ending and nothing runs
}

func newCalls() *calls { return &calls{none: make(chan struct{})} }

func (c *calls) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if !c.begin() {
		return nil, status.Error(codes.Unavailable, "the plugin is stopping, call again when it is back")
	}
	defer c.done() // deferred, so that a call that panics is counted out too
	return handler(ctx, request)
}

// begin is false once end was called: a client that keeps calling must not keep
// the plugin alive.
func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return false
	}
	c.running++
	return true
}

func (c *calls) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.closeIfOver()
}

// end lets no further call begin. What it returns is closed when the last
// running one is done. It must be called once only.
func (c *calls) end() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	c.closeIfOver()
	return c.none
}

func (c *calls) closeIfOver() {
	if c.ending && c.running == 0 {
		close(c.none)
	}
}
