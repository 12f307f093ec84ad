package nodeplugin

import (
	"errors"
	"fmt"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/event"
	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/storedir"
)

// standaloneCluster is recorded as the cluster of a store that was used without
// one, so that the first real cluster does not sweep it empty.
const standaloneCluster = "standalone"

// Connection is what a driver wants to hear of its cluster.
type Connection struct {
	// Dropped is told of Events that were lost.
	Dropped func(occurrences int)
	// Changed and Annotations are those of persistentvolume.Config.
	Changed     func(name string)
	Annotations []string
}

// Connect makes what talks to the API server, which is asked nothing before Run. Without
// one (--standalone) Events go to the log.
func (p *Plugin) Connect(c Connection) error {
	if p.config.Options.Standalone {
		p.Events = event.NewLog(p.Log)
		return nil
	}
	client, err := apiclient.New(p.config.Options.Kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server (--kubeconfig names a file, --standalone does without): %w", err)
	}
	p.poster = event.New(event.Config{
		Client: client, Component: p.config.Driver, Node: p.config.Options.NodeID, Log: p.Log, Dropped: c.Dropped,
	})
	p.Events = p.poster
	p.View = persistentvolume.New(persistentvolume.Config{
		Client: client, Log: p.Log, Changed: c.Changed, Annotations: c.Annotations,
	})
	return nil
}

// recordStandalone marks a store that no cluster has used yet, once nothing can
// refuse the start any more.
func (p *Plugin) recordStandalone() error {
	if !p.config.Options.Standalone {
		return nil
	}
	recorded, err := p.store.Cluster()
	switch {
	case errors.Is(err, storedir.ErrClusterLost):
		p.Log.Warn("nothing will be removed in a cluster either", "error", err)
		return nil
	case err != nil, recorded != "":
		return err
	}
	return p.store.SetCluster(standaloneCluster)
}
