package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"k8s.io/client-go/rest"

	"liken.sh/csicommon/httplistener"
	"liken.sh/csicommon/persistentvolume"
)

// Settings are what a Webhook needs. All have to be set.
type Settings struct {
	Client rest.Interface
	// Driver is whose volumes are marked, by Annotation.
	Driver, Annotation string
	Meter              metric.Meter
	Log                *slog.Logger
}

// Webhook is an http.Handler for forges. What it answers is true while Run runs.
type Webhook struct {
	settings  Settings
	catalogue *persistentvolume.Catalogue[target]
	targets   targets
	secrets   secrets
	marks     *marks
	meters    *meters
	refusals  refusals
	// nobodys is what requests are checked with that no Secret is known for, so that it
	// takes as long.
	nobodys []byte

	backlog backlog
	// catchUp wakes who works the backlog off.
	catchUp chan struct{}
	isReady atomic.Bool

	held held
	// toVerify wakes who verifies what is held.
	toVerify chan struct{}
}

// New makes one that knows no volume yet, and asks nobody.
func New(settings Settings) (*Webhook, error) {
	w := &Webhook{
		settings: settings, secrets: secrets{client: settings.Client},
		nobodys: make([]byte, 32), catchUp: make(chan struct{}, 1), toVerify: make(chan struct{}, 1),
	}
	w.backlog.addAll() // Nobody listened before.
	if _, err := rand.Read(w.nobodys); err != nil {
		return nil, fmt.Errorf("make a secret of nobody's: %w", err)
	}
	var err error
	if w.meters, err = newMeters(settings.Meter); err != nil {
		return nil, err
	}
	w.marks = newMarks(settings.Client, settings.Annotation, w.meters.marked)
	w.catalogue = persistentvolume.NewCatalogue(persistentvolume.CatalogueConfig[target]{
		Client: settings.Client, Log: settings.Log, Driver: settings.Driver,
		Keep: targetOf, Changed: w.targets.change, Current: w.isCurrent,
	})
	return w, nil
}

// Bounds are those of a listener that serves it. The longest answer is that of a slow
// request whose volumes are marked slowly.
func Bounds() httplistener.Bounds {
	return httplistener.Bounds{
		Connections: 64, HeaderBytes: 16 << 10,
		ReadHeader: 5 * time.Second, Read: readTimeout, Write: readTimeout + patience + 5*time.Second, Idle: time.Minute,
		Shutdown: patience,
	}
}

// Ready is nil once the volumes of the cluster were read, and from then on: what is known of
// them stays known.
func (w *Webhook) Ready(context.Context) error {
	if w.isReady.Load() {
		return nil
	}
	return w.catalogue.Unread()
}

// Run follows the cluster until ctx ends. Marks that were asked for go on; see End.
func (w *Webhook) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { w.catalogue.Run(ctx) })
	group.Go(func() { w.keepCatchingUp(ctx) })
	group.Go(func() { w.keepVerifying(ctx) })
	group.Wait()
	return nil
}

// End makes the marks that were asked for, when no request comes any more.
func (w *Webhook) End() { w.marks.end(markTimeout) }

// isCurrent is told that the cluster is read again.
func (w *Webhook) isCurrent() {
	w.isReady.Store(true)
	w.wake()
}
