package main

import (
	"context"

	"liken.sh/csicommon/nodeplugin"
	"liken.sh/pernode/internal/driver"
	"liken.sh/pernode/internal/sweep"
)

// sweeping is what removes copies. Without an API server (standalone) nothing does.
type sweeping struct {
	sweeper driver.Sweeper
	sweeps  *sweep.Sweeper
}

// noSweeper is the sweeper of a standalone plugin.
type noSweeper struct{}

func (noSweeper) Wanted(string, string) {}
func (noSweeper) Published(string)      {}
func (noSweeper) Released(string)       {}

func (p *plugin) openSweeping() error {
	err := p.Connect(nodeplugin.Connection{
		Dropped: func(occurrences int) { p.metrics.EventsDropped(occurrences) },
		Changed: func(name string) { p.sweeping.sweeps.Changed(name) },
	})
	if err != nil {
		return err
	}
	if p.View == nil {
		p.sweeping = sweeping{sweeper: noSweeper{}}
		return nil
	}
	sweeps := sweep.New(sweep.Config{
		Driver: driver.Name, Every: p.options.sweepEvery, AdoptStore: p.options.AdoptStore,
		Store: p.store, Cluster: p.View, Removed: p.inspector.Forget, Log: p.Log,
	})
	p.sweeping = sweeping{sweeper: sweeps, sweeps: sweeps}
	return nil
}

// parts run beside the servers until the plugin stops.
func (s sweeping) parts() []func(context.Context) {
	if s.sweeps == nil {
		return nil
	}
	return []func(context.Context){s.sweeps.Run}
}

func (s sweeping) figures() sweep.Figures {
	if s.sweeps == nil {
		return sweep.Figures{}
	}
	return s.sweeps.Figures()
}
