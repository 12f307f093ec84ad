package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"liken.sh/csicommon/build"
	"liken.sh/csicommon/server"
	"liken.sh/pernode/internal/driver"
)

// backgroundEnd is how long what works in the background may take to end. A disk
// that does not answer holds it for ever, and must not hold the plugin too.
const backgroundEnd = 5 * time.Second

// run serves until ctx ends or a part fails, and then stops in order: no new
// call, the running ones finished, the last Events posted.
func (p *plugin) run(ctx context.Context) error {
	p.log.Info("starting", "driver", driver.Name, "version", build.Version(), "node", p.options.nodeID,
		"store", p.options.store, "standalone", p.options.standalone, "endpoint", p.socket, "http", p.httpAddress())
	if err := p.mounts.RequireShared(p.options.kubeletDir); err != nil {
		p.log.Error("every publish will be refused", "error", err)
	}
	if err := p.recordStandalone(); err != nil {
		return err
	}
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	var behind sync.WaitGroup
	for _, part := range append(p.cluster.parts(), p.inspector.Run, p.store.EmptyTrash) {
		behind.Go(func() { part(background) })
	}
	err := p.serve(ctx)
	stopBackground()
	if !endsWithin(&behind, backgroundEnd) {
		p.log.Warn("stopping although the disk does not answer")
	}
	p.pushLast()
	p.log.Info("stopped")
	return err
}

// serve runs what others talk to until ctx ends or one part fails. CSI is first:
// the kubelet dials it the moment it sees the registration socket.
func (p *plugin) serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return p.server.Serve(ctx, p.listener) },
		p.kubelet.Run,
	}
	if p.http != nil {
		parts = append(parts, p.http.Serve)
	}
	errs := make([]error, len(parts))
	var group sync.WaitGroup
	for i, part := range parts {
		group.Go(func() {
			if errs[i] = part(ctx); errs[i] != nil {
				stop()
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func endsWithin(group *sync.WaitGroup, bound time.Duration) bool {
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-time.After(bound):
		return false
	}
}

// pushLast pushes the last metrics. A collector that is down must not turn a clean
// stop into a failure. The store is not closed: a look at a disk that hangs may
// still be using it, and the end of the process gives it up.
func (p *plugin) pushLast() {
	if err := p.telemetry.Shutdown(context.Background()); err != nil {
		p.log.Warn("the last metrics were not pushed", "error", err)
	}
}

func (p *plugin) probe(ctx context.Context) error { return server.Probe(ctx, p.socket) }

// ready is nil when new copies can be made, mounts reach the kubelet and the kubelet
// knows the plugin. A standalone plugin may have no kubelet, but not one that
// refused it.
func (p *plugin) ready(ctx context.Context) error {
	known := p.kubelet.Registered()
	if p.options.standalone {
		known = p.kubelet.Refused()
	}
	return errors.Join(p.probe(ctx), p.store.Writable(ctx), p.mounts.RequireShared(p.options.kubeletDir), known)
}

// httpAddress is the bound one: with port 0 only the log can tell which it is.
func (p *plugin) httpAddress() string {
	if p.http == nil {
		return ""
	}
	return p.http.Address()
}
