package sweep

import (
	"context"
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
	return persistentvolume.Settlement{
		Cluster: s.config.Cluster.Cluster, Record: s.config.Store, Adopt: s.config.AdoptStore, Log: s.config.Log,
	}.Settle(ctx)
}
