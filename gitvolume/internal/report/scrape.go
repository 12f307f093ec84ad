package report

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"liken.sh/csicommon/telemetry"
	"liken.sh/gitvolume/internal/attributes"
)

// instruments are those that are read at a scrape, so that the series of a volume go with
// it.
type instruments struct {
	armed, pending, unpushed, skipped, diverged, degraded metric.Int64ObservableGauge
	abnormal, volumes, bytes, refuses, build              metric.Int64ObservableGauge
	capacity, available                                   metric.Int64ObservableGauge
	lastPush                                              metric.Float64ObservableGauge
	failures                                              metric.Int64ObservableCounter
}

func (r *Reports) observe(meter metric.Meter) error {
	made := &telemetry.Instruments{Meter: meter}
	i := newInstruments(made)
	return made.Observe(func(ctx context.Context, o metric.Observer) error {
		i.observeNode(ctx, o, r.settings)
		i.observeVolumes(o, takeSample(r.open()))
		return nil
	})
}

func newInstruments(made *telemetry.Instruments) (i instruments) {
	made.Gauge(&i.armed, "git_csi_armed", "1 if a writeable volume is committed.")
	made.Gauge(&i.pending, "git_csi_pending_paths", "Changed paths that are not committed.")
	made.Gauge(&i.unpushed, "git_csi_unpushed_commits", "Commits that the remote does not have.")
	made.Gauge(&i.skipped, "git_csi_skipped_files", "Paths that are left out of commits.")
	made.Gauge(&i.diverged, "git_csi_diverged", "1 if a volume's commits go to its side branch.")
	made.Gauge(&i.degraded, "git_csi_watch_degraded", "1 if changes are found by scans, because file system events fail.")
	made.Gauge(&i.abnormal, "git_csi_volume_abnormal", "1 while anything is wrong with a volume.")
	made.Gauge(&i.volumes, "git_csi_volumes", "Volumes on this node.")
	made.Gauge(&i.bytes, "git_csi_store_bytes", "Allocated bytes of the store, as last measured.")
	made.Gauge(&i.capacity, "git_csi_store_capacity_bytes", "Size of the store's file system.")
	made.Gauge(&i.available, "git_csi_store_available_bytes", "Bytes of the store's file system that can still be taken.")
	made.Gauge(&i.refuses, "git_csi_store_refuses_writeable", "1 if the store takes no new writeable volume, because a reboot would empty it.")
	made.Gauge(&i.build, buildName, buildSays)
	made.Time(&i.lastPush, "git_csi_last_push_timestamp_seconds", "Unix time of the last push that arrived.")
	made.Counter(&i.failures, "git_csi_push_failures_total", "Pushes that failed.")
	return i
}

// observeNode leaves out what is not known: a 0 would be a lie.
func (i instruments) observeNode(ctx context.Context, o metric.Observer, settings Settings) {
	if settings.StoreBytes != nil {
		if bytes, known := settings.StoreBytes(); known {
			o.ObserveInt64(i.bytes, bytes)
		}
	}
	if settings.StoreSpace != nil {
		if space, known := settings.StoreSpace(ctx); known {
			o.ObserveInt64(i.capacity, space.Bytes)
			o.ObserveInt64(i.available, space.AvailableBytes)
		}
	}
	o.ObserveInt64(i.refuses, flag(settings.RefusesWriteable))
	observeBuild(o, i.build, "node")
}

func (i instruments) observeVolumes(o metric.Observer, s sample) {
	for kind, count := range s.kinds {
		o.ObserveInt64(i.volumes, count, labels("kind", label(kind)))
	}
	for of, abnormal := range s.verdicts {
		o.ObserveInt64(i.abnormal, abnormal, labels("namespace", of.namespace, "claim", of.claim, "volume", of.volume))
	}
	for of, c := range s.claims {
		l := labels("namespace", of.namespace, "claim", of.claim)
		o.ObserveInt64(i.armed, c.armed, l)
		o.ObserveInt64(i.pending, c.pending, l)
		o.ObserveInt64(i.unpushed, c.unpushed, l)
		o.ObserveInt64(i.skipped, c.skipped, l)
		o.ObserveInt64(i.diverged, c.diverged, l)
		o.ObserveInt64(i.degraded, c.degraded, l)
		o.ObserveInt64(i.failures, c.failures, l)
		if !c.lastPush.IsZero() {
			o.ObserveFloat64(i.lastPush, float64(c.lastPush.UnixNano())/1e9, l)
		}
	}
}

// labels makes one set of names and values. One value that is no UTF-8 and the whole
// scrape fails.
func labels(pairs ...string) metric.MeasurementOption {
	var set []attribute.KeyValue
	for n := 0; n < len(pairs); n += 2 {
		set = append(set, attribute.String(pairs[n], strings.ToValidUTF8(pairs[n+1], "�")))
	}
	return metric.WithAttributeSet(attribute.NewSet(set...))
}

// sample is what a scrape shows of the volumes. Several can have the same labels: pods of
// one Deployment with an inline volume, a claim made again while commits of the one
// before still wait for their push. They are one series, with what is worst in it.
type sample struct {
	kinds    map[attributes.Kind]int64
	verdicts map[verdictLabels]int64
	claims   map[claimLabels]claimSample
}

type verdictLabels struct{ namespace, claim, volume string }

type claimLabels struct{ namespace, claim string }

type claimSample struct {
	armed, pending, unpushed, skipped, diverged, degraded, failures int64
	lastPush                                                        time.Time
}

func takeSample(volumes []*Volume) sample {
	s := sample{
		kinds:    map[attributes.Kind]int64{attributes.KindInline: 0, attributes.KindReadOnlyClaim: 0, attributes.KindWriteable: 0},
		verdicts: map[verdictLabels]int64{},
		claims:   map[claimLabels]claimSample{},
	}
	for _, v := range volumes {
		v.sample(s)
	}
	return s
}

func (v *Volume) sample(s sample) {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.subject
	s.kinds[of.Kind]++
	verdict := verdictLabels{of.Namespace, of.Claim, of.Volume}
	s.verdicts[verdict] = max(s.verdicts[verdict], flag(len(v.judge()) > 0))
	if of.Kind != attributes.KindWriteable {
		return
	}
	claim := claimLabels{of.Namespace, of.Claim}
	c := s.claims[claim]
	c.armed = max(c.armed, flag(v.figures.Armed))
	c.pending += int64(v.figures.Pending)
	c.unpushed += int64(v.figures.Unpushed)
	c.skipped += int64(v.skipped.count)
	c.diverged = max(c.diverged, flag(v.lasts(Diverged)))
	c.degraded = max(c.degraded, flag(v.lasts(WatchDegraded)))
	c.failures += v.pushFailures
	if v.figures.LastPush.After(c.lastPush) {
		c.lastPush = v.figures.LastPush
	}
	s.claims[claim] = c
}

func (v *Volume) lasts(f Fault) bool {
	_, raised := v.faults[f]
	return raised
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
