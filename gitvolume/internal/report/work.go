package report

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const (
	// labelledRepositories bounds the series of fetches: inline volumes name whatever
	// their authors like, and what is counted once stays until the process ends.
	labelledRepositories = 500
	// otherRepositories is the label of those beyond.
	otherRepositories = "other"
)

// work is what is counted as it is done, and belongs to no volume.
type work struct {
	commits, rebases, pushes, fetches metric.Float64Histogram
	fetchFailures, demanded, dropped  metric.Int64Counter
	repositories                      *repositories
}

func newWork(meter metric.Meter) (w work, err error) {
	seconds := func(into *metric.Float64Histogram, name, description string, bounds ...float64) {
		if err == nil {
			*into, err = meter.Float64Histogram(name, metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		}
	}
	counter := func(into *metric.Int64Counter, name, description string) {
		if err == nil {
			*into, err = meter.Int64Counter(name, metric.WithDescription(description))
		}
	}
	inProcess := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	onTheWire := []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
	seconds(&w.commits, "git_csi_commit_duration_seconds", "Time a commit took.", inProcess...)
	seconds(&w.rebases, "git_csi_rebase_duration_seconds", "Time a rebase of commits took, whether or not it conflicted.", inProcess...)
	seconds(&w.pushes, "git_csi_push_duration_seconds", "Time a push took, whether or not it arrived.", onTheWire...)
	seconds(&w.fetches, "git_csi_fetch_duration_seconds", "Time a fetch took, whether or not it succeeded.", onTheWire...)
	counter(&w.fetchFailures, "git_csi_fetch_failures_total", "Fetches that failed, and looks at what there is to fetch.")
	counter(&w.demanded, "git_csi_demanded_pulls_total", "Pulls that somebody demanded.")
	counter(&w.dropped, "csi_events_dropped_total", "Events that could not be posted.")
	if err != nil {
		return work{}, err
	}
	// An alert on their rates wants them to exist.
	w.demanded.Add(context.Background(), 0)
	w.dropped.Add(context.Background(), 0)
	w.repositories = &repositories{labels: map[string]metric.MeasurementOption{}}
	return w, nil
}

// Committed counts a commit that took so long.
func (r *Reports) Committed(took time.Duration) {
	r.work.commits.Record(context.Background(), took.Seconds())
}

// Rebased counts a rebase of commits that took so long, whether or not it conflicted.
func (r *Reports) Rebased(took time.Duration) {
	r.work.rebases.Record(context.Background(), took.Seconds())
}

// Pushed counts a push that took so long, whether or not it arrived.
func (r *Reports) Pushed(took time.Duration) {
	r.work.pushes.Record(context.Background(), took.Seconds())
}

// Fetched counts a fetch of the repository, which is host and path and never a URL.
func (r *Reports) Fetched(repo string, took time.Duration, err error) {
	label := r.work.repositories.label(repo)
	r.work.fetches.Record(context.Background(), took.Seconds(), label)
	failed := int64(0)
	if err != nil {
		failed = 1
	}
	r.work.fetchFailures.Add(context.Background(), failed, label)
}

// LookFailed counts a look at what a repository has that failed, before anything of it could be
// fetched: as a fetch that failed, and not among those of which it is known how long they took.
func (r *Reports) LookFailed(repo string) {
	r.work.fetchFailures.Add(context.Background(), 1, r.work.repositories.label(repo))
}

// PullDemanded counts a pull that somebody demanded.
func (r *Reports) PullDemanded() { r.work.demanded.Add(context.Background(), 1) }

// EventsDropped counts Events that could not be posted.
func (r *Reports) EventsDropped(occurrences int) {
	r.work.dropped.Add(context.Background(), int64(occurrences))
}

// repositories are those that have a label of their own.
type repositories struct {
	mu     sync.Mutex
	labels map[string]metric.MeasurementOption
}

func (r *repositories) label(repo string) metric.MeasurementOption {
	// One label that is no UTF-8 and the whole scrape fails.
	repo = strings.ToValidUTF8(repo, "�")
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.labels[repo]; !known && len(r.labels) >= labelledRepositories {
		repo = otherRepositories
	}
	if r.labels[repo] == nil {
		r.labels[repo] = metric.WithAttributeSet(attribute.NewSet(attribute.String("repo", repo)))
	}
	return r.labels[repo]
}
