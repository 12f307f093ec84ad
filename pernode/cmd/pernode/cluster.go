package main

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/event"
	"liken.sh/csicommon/persistentvolume"
	"liken.sh/pernode/internal/copies"
	"liken.sh/pernode/internal/driver"
	"liken.sh/pernode/internal/sweep"
)

// cluster is what the plugin has of an API server. Without one (standalone)
// Events go to the log and nothing sweeps.
type cluster struct {
	events  event.Recorder
	poster  *event.Poster
	view    *persistentvolume.View
	sweeper driver.Sweeper
	sweeps  *sweep.Sweeper
}

// noSweeper is the sweeper of a standalone plugin.
type noSweeper struct{}

func (noSweeper) Wanted(string, string) {}
func (noSweeper) Published(string)      {}
func (noSweeper) Released(string)       {}

func (p *plugin) openCluster(context.Context) error {
	if p.options.standalone {
		p.cluster = cluster{events: event.NewLog(p.log), sweeper: noSweeper{}}
		return nil
	}
	client, err := apiclient.New(p.options.kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server (--kubeconfig names a file, --standalone does without): %w", err)
	}
	c := cluster{}
	c.poster = event.New(event.Config{
		Client: client, Component: driver.Name, Node: p.options.nodeID, Log: p.log,
		Dropped: func(occurrences int) { p.metrics.EventsDropped(occurrences) },
	})
	c.events = c.poster
	c.view = persistentvolume.New(persistentvolume.Config{
		Client: client, Log: p.log,
		Changed: func(name string) { c.sweeps.Changed(name) },
	})
	c.sweeps = sweep.New(sweep.Config{
		Driver: driver.Name, Every: p.options.sweepEvery, AdoptStore: p.options.adoptStore,
		Store: p.store, Cluster: c.view, Removed: p.inspector.Forget, Log: p.log,
	})
	c.sweeper = c.sweeps
	p.cluster = c
	return nil
}

// recordStandalone marks a store that no cluster has used yet, once nothing can
// refuse the start any more.
func (p *plugin) recordStandalone() error {
	if !p.options.standalone {
		return nil
	}
	recorded, err := p.store.Cluster()
	switch {
	case errors.Is(err, copies.ErrClusterLost):
		p.log.Warn("nothing will be removed in a cluster either", "error", err)
		return nil
	case err != nil, recorded != "":
		return err
	}
	return p.store.SetCluster(standaloneCluster)
}

// parts run beside the servers until the plugin stops.
func (c cluster) parts() []func(context.Context) {
	if c.sweeps == nil {
		return nil
	}
	return []func(context.Context){c.poster.Run, c.view.Run, c.sweeps.Run}
}

func (c cluster) figures() sweep.Figures {
	if c.sweeps == nil {
		return sweep.Figures{}
	}
	return c.sweeps.Figures()
}
