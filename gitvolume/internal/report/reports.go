package report

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"liken.sh/csicommon/event"
	"liken.sh/csicommon/usage"
)

// Settings are what reports go to. Log and Meter must be set.
type Settings struct {
	// Recorder posts the Events; nil: the log has to do, which says all of them too.
	Recorder event.Recorder
	// Unposted is told of each fault, as it begins or its message changes, that makes no
	// Event: for a person who looks on, and has no log; nil: nobody is.
	Unposted func(message string)
	Log      *slog.Logger
	Meter    metric.Meter
	// StoreBytes is how much the store takes on its disk, as last measured; nil or not
	// known: no series. It is asked at each scrape and must answer from memory.
	StoreBytes func() (bytes int64, known bool)
	// StoreSpace is what the file system of the store has; nil or not known: no series. It
	// is asked at each scrape and must not wait for a disk that does not answer longer than
	// a moment: the scrape would fail for all volumes.
	StoreSpace func(context.Context) (space usage.Space, known bool)
	// RefusesWriteable tells that the store takes no new writeable volume, because a
	// reboot would empty it.
	RefusesWriteable bool
}

// Reports is what a process says of its volumes.
type Reports struct {
	settings Settings
	work     work

	mu      sync.Mutex
	volumes map[*Volume]struct{}
	refused map[refusal]time.Time
}

// refusal is what is not told twice within a minute.
type refusal struct {
	handle  string
	pod     Pod
	message string
}

// New registers every instrument.
func New(settings Settings) (*Reports, error) {
	r := &Reports{settings: settings, volumes: map[*Volume]struct{}{}, refused: map[refusal]time.Time{}}
	var err error
	if r.work, err = newWork(settings.Meter); err != nil {
		return nil, fmt.Errorf("make the instruments: %w", err)
	}
	if err := r.observe(settings.Meter); err != nil {
		return nil, err
	}
	return r, nil
}

// Volume begins to report a volume, until Close.
func (r *Reports) Volume(s Subject) *Volume {
	v := &Volume{reports: r, subject: s, faults: map[Fault]lasting{}, ends: map[Fault]int{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.volumes[v] = struct{}{}
	return v
}

func (r *Reports) forget(v *Volume) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.volumes, v)
}

// open are the volumes that are reported now.
func (r *Reports) open() []*Volume {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make([]*Volume, 0, len(r.volumes))
	for v := range r.volumes {
		open = append(open, v)
	}
	return open
}

// Refused says that the pod is not given the volume. That is no fault of the volume,
// which another pod may use, and the volume need not be reported otherwise. The same
// refusal counts up at most once a minute, however often the kubelet asks.
func (r *Reports) Refused(s Subject, p Pod, message string) {
	r.refuse(s, p, reasonRefused, message)
}

// Unfetched is Refused for a pod as which the volume cannot be fetched, while others use
// it.
func (r *Reports) Unfetched(s Subject, p Pod, message string) {
	r.refuse(s, p, natureOf(FetchFailed).event, message)
}

func (r *Reports) refuse(s Subject, p Pod, reason, message string) {
	message = event.Message(message)
	if !r.isDue(refusal{s.Handle, p, message}) {
		return
	}
	var pods []Pod
	if p != (Pod{}) { // Without podInfoOnMount no pod is known.
		pods = append(pods, p)
	}
	s.named(r.settings.Log, pods...).Warn("the volume is refused", "message", message)
	r.post(event.Warning, reason, message, s.objects(pods...)...)
}

func (r *Reports) isDue(told refusal) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for old, at := range r.refused {
		if now.Sub(at) >= repeatEvery {
			delete(r.refused, old)
		}
	}
	if _, isRepeat := r.refused[told]; isRepeat {
		return false
	}
	r.refused[told] = now
	return true
}

func (r *Reports) post(kind event.Type, reason, message string, about ...event.Object) {
	if r.settings.Recorder == nil {
		return
	}
	for _, object := range about {
		r.settings.Recorder.Post(object, kind, reason, message)
	}
}
