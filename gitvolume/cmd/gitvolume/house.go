package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/store"
)

// The API server is asked again which cluster it is after a while that doubles.
const (
	identifyAgain = 10 * time.Second
	identifyMost  = 10 * time.Minute
)

// keepHouse tidies the store until ctx ends. While another cluster answers than the
// store's nothing is removed; that no API server answers says nothing.
func (n *node) keepHouse(ctx context.Context) {
	var tidying tidying
	defer tidying.end()
	tidying.begin(ctx, n)
	if n.View == nil {
		<-ctx.Done()
		return
	}
	settlement := persistentvolume.Settlement{
		Cluster: n.View.Cluster, Record: n.store, Adopt: n.options.AdoptStore, Log: n.Log,
	}
	for pause := identifyAgain; ; pause = min(2*pause, identifyMost) {
		err := settlement.Settle(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			tidying.begin(ctx, n)
			<-ctx.Done()
			return
		case errors.Is(err, persistentvolume.ErrOtherCluster), errors.Is(err, store.ErrClusterLost):
			tidying.end()
			n.Log.Error("nothing is removed from the store: the API server has not shown to be its cluster", "error", err)
		default:
			n.Log.Warn("the API server does not say which cluster it is, asking again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// tidying is the loop that removes what no volume of the store needs, while it runs.
type tidying struct {
	stop  context.CancelFunc // nil: it does not run.
	group sync.WaitGroup
}

func (t *tidying) begin(ctx context.Context, n *node) {
	if t.stop != nil {
		return
	}
	ctx, t.stop = context.WithCancel(ctx)
	t.group.Go(func() { n.store.KeepTidy(ctx, n.children.command.GC) })
}

func (t *tidying) end() {
	if t.stop == nil {
		return
	}
	t.stop()
	t.group.Wait()
	t.stop = nil
}
