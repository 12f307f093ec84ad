package sweep

import (
	"context"
	"fmt"
	"time"

	"liken.sh/csicommon/persistentvolume"
)

// awaitCluster waits until the API server has said which cluster it is, and
// records that in a store that knows none yet. It returns false when ctx ended.
// While another cluster answers, no sweep is made at all: its API server knows
// nothing of these copies. That is reported and counted each time it is asked.
func (s *Sweeper) awaitCluster(ctx context.Context) bool {
	for pause := min(identifyAgain, s.config.Every); ; pause = min(2*pause, s.config.Every) {
		err := s.identify(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.failures.Add(1)
		s.config.Log.Error("no copy is removed: the API server has not shown to be the store's cluster", "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

func (s *Sweeper) identify(ctx context.Context) error {
	answered, err := s.config.Cluster.Cluster(ctx)
	if err != nil {
		return err
	}
	recorded, err := s.config.Store.Cluster()
	isNew := err == nil && recorded == ""
	switch {
	case isNew, s.config.AdoptStore && recorded != answered:
		s.config.Log.Info("the store belongs to this cluster from now on", "cluster", answered, "before", recorded)
		return s.config.Store.SetCluster(answered)
	case err != nil:
		return err
	case recorded == answered:
		return nil
	}
	return fmt.Errorf("%w: the store belongs to cluster %q, %q answers; start once with --adopt-store if that is meant",
		persistentvolume.ErrOtherCluster, recorded, answered)
}
