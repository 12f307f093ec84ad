package nodeplugin

import (
	"context"
	"errors"
	"sync"
	"time"

	"liken.sh/csicommon/build"
)

// behindEnd is how long what works in the background may take to end. A disk
// that does not answer holds it for ever, and must not hold the plugin too.
const behindEnd = 5 * time.Second

// Work is what a plugin does beside serving. All of it may be left out.
type Work struct {
	// Begin is called once nothing else can refuse the start, before the first call of
	// CSI. Its error is the end.
	Begin func(context.Context) error
	// Leave is called as soon as serving is to end, and has calls return that could wait
	// longer than whoever ends the plugin does: End is not called before the last of them.
	Leave func()
	// Behind run until the last call of CSI has ended, and after End.
	Behind []func(context.Context)
	// End is called when the last call has ended. It is waited for as long as it takes.
	End func()
	// Close is called last of all, unless something that hangs may still use what it
	// closes: then the end of the process gives that up.
	Close func() error
}

// Run serves until ctx ends or a part fails, and then stops in order: no new
// call, the running ones finished or left, the last Events posted.
func (p *Plugin) Run(ctx context.Context, work Work) error {
	o := p.config.Options
	p.Log.Info("starting", "driver", p.config.Driver, "version", build.Version(), "node", o.NodeID,
		"store", o.Store, "standalone", o.Standalone, "endpoint", p.socket, "http", p.httpAddress())
	if err := p.Mounts.RequireShared(o.KubeletDir); err != nil {
		p.Log.Error("every publish will be refused", "error", err)
	}
	if err := p.begin(ctx, work); err != nil {
		return errors.Join(err, p.Close())
	}
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	var behind sync.WaitGroup
	for _, part := range append(p.clusterParts(), work.Behind...) {
		behind.Go(func() { part(background) })
	}
	err := p.serve(ctx, work.Leave)
	if work.End != nil {
		work.End()
	}
	stopBackground()
	if !EndsWithin(&behind, behindEnd) {
		p.Log.Warn("stopping although the disk does not answer")
		work.Close = nil
	}
	p.pushLast()
	if work.Close != nil {
		err = errors.Join(err, work.Close())
	}
	p.Log.Info("stopped")
	return err
}

func (p *Plugin) begin(ctx context.Context, work Work) error {
	if err := p.recordStandalone(); err != nil {
		return err
	}
	if work.Begin == nil {
		return nil
	}
	return work.Begin(ctx)
}

// clusterParts are those that talk to the API server.
func (p *Plugin) clusterParts() []func(context.Context) {
	if p.View == nil {
		return nil
	}
	return []func(context.Context){p.poster.Run, p.View.Run}
}

// serve runs what others talk to until ctx ends or one part fails. CSI is first:
// the kubelet dials it the moment it sees the registration socket.
func (p *Plugin) serve(ctx context.Context, leave func()) error {
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return p.server.Serve(ctx, p.listener) },
		p.kubelet.Run,
	}
	if p.http != nil {
		parts = append(parts, p.http.Serve)
	}
	if leave != nil {
		parts = append(parts, func(ctx context.Context) error { <-ctx.Done(); leave(); return nil })
	}
	return Together(ctx, parts...)
}

// EndsWithin waits for the group, for so long at most, and tells whether it ended.
func EndsWithin(group *sync.WaitGroup, bound time.Duration) bool {
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
// stop into a failure.
func (p *Plugin) pushLast() {
	if err := p.telemetry.Shutdown(context.Background()); err != nil {
		p.Log.Warn("the last metrics were not pushed", "error", err)
	}
}
