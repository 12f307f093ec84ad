package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"liken.sh/csicommon/nodeplugin"
	"liken.sh/pernode/internal/copies"
	"liken.sh/pernode/internal/driver"
	"liken.sh/pernode/internal/inspect"
	"liken.sh/pernode/internal/metrics"
)

// plugin is everything that runs in the process.
type plugin struct {
	*nodeplugin.Plugin
	options   options
	metrics   *metrics.Metrics
	store     *copies.Store
	inspector *inspect.Inspector
	sweeping  sweeping
}

// start makes and binds all that can be refused at the start.
func start(ctx context.Context, o options) (*nodeplugin.Plugin, nodeplugin.Work, error) {
	common, err := nodeplugin.Open(ctx, nodeplugin.Config{
		Driver: driver.Name, Options: o.Options, Scratch: filepath.Join(o.Store, copies.ScratchDir),
	})
	if err != nil {
		return nil, nodeplugin.Work{}, err
	}
	p := &plugin{Plugin: common, options: o}
	for _, step := range []func() error{p.openStore, p.openSweeping, p.openMetrics, p.listen} {
		if err := step(); err != nil {
			return nil, nodeplugin.Work{}, errors.Join(err, p.Close())
		}
	}
	// The store is not closed at the end: a look at a disk that hangs may still be using
	// it, and the end of the process gives it up.
	return common, nodeplugin.Work{Behind: append(p.sweeping.parts(), p.inspector.Run, p.store.EmptyTrash)}, nil
}

func (p *plugin) openStore() (err error) {
	p.store, err = copies.Open(copies.Config{
		Dir: p.options.Store, KubeletDir: p.KubeletDir, RequireMount: p.options.RequireMount,
		Mounts: p.Mounts, Log: p.Log,
	})
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	p.inspector = inspect.New(inspect.Config{Store: p.store, Log: p.Log})
	return nil
}

func (p *plugin) openMetrics() (err error) {
	p.metrics, err = metrics.New(metrics.Config{
		Meter: p.Meter, Copies: p.inspector.Figures, Sweeps: p.sweeping.figures,
	})
	return err
}

func (p *plugin) listen() error {
	service := driver.New(driver.Config{
		NodeID: p.options.NodeID, Store: p.store, Sweeper: p.sweeping.sweeper, Inspector: p.inspector,
		Events: p.Events, Refused: p.metrics.Refused,
	})
	return p.Listen(nodeplugin.Service{
		Store: p.store, Codes: driver.Codes(),
		Register: func(r grpc.ServiceRegistrar) { csi.RegisterNodeServer(r, service) },
	})
}
