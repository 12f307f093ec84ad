package persistentvolume

import (
	"context"
	"fmt"
	"log/slog"
)

// Record is where a store keeps which cluster it belongs to; storedir.Store is one.
type Record interface {
	// Cluster is empty when none was recorded yet; an error says that the record is lost.
	Cluster() (string, error)
	SetCluster(uid string) error
}

// Settlement is the question which cluster a store belongs to.
type Settlement struct {
	// Cluster asks the API server who it is; View.Cluster does.
	Cluster func(context.Context) (string, error)
	Record  Record
	// Adopt has a store belong to whatever cluster answers (--adopt-store).
	Adopt bool
	Log   *slog.Logger
}

// Settle returns nil when the cluster that answers is the store's, and records it in a
// store that knows none yet. The error wraps ErrOtherCluster when it is another one: its
// API server knows nothing of what the store holds.
func (s Settlement) Settle(ctx context.Context) error {
	answered, err := s.Cluster(ctx)
	if err != nil {
		return err
	}
	recorded, err := s.Record.Cluster()
	isNew := err == nil && recorded == ""
	switch {
	case isNew, s.Adopt && recorded != answered:
		if err := s.Record.SetCluster(answered); err != nil {
			return err
		}
		// Not before it is true: a process that is killed in between leaves a store of no cluster.
		s.Log.Info("the store belongs to this cluster from now on", "cluster", answered, "before", recorded)
		return nil
	case err != nil:
		return err
	case recorded == answered:
		return nil
	}
	return fmt.Errorf("%w: the store belongs to cluster %q, %q answers; start once with --adopt-store if that is meant",
		ErrOtherCluster, recorded, answered)
}
