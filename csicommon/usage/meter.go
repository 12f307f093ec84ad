package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// rest is how long a volume is left alone after a walk, and share how many
	// times as long as the walk took if that is longer: a volume takes at most
	// a fiftieth of the worker's time, whoever asks however often.
	rest  = time.Minute
	share = 50
	// limit is when a walk is given up, so that one volume that grows faster
	// than it is measured cannot keep all others from being measured.
	limit = time.Hour
	// hungAfter is when a walk that gets no answer from the disk no longer counts
	// as the one walk of the process: the next one begins beside it.
	hungAfter = 30 * time.Second
	// hangable is how many walks may hang so; each takes a thread that no signal
	// ends. With that many nothing more is measured until one of them gets its
	// answer, since what they have in common is then more than one volume's disk.
	hangable = 4
	// parting is how long Run waits for a walk when it is to end.
	parting = time.Second
)

// errHung is why a walk ended that got no answer.
var errHung = errors.New("the disk does not answer")

// ErrNotMeasured says that there is no value for the volume yet. An error that
// wraps it wraps the reason too, when one is known.
var ErrNotMeasured = errors.New("not measured yet")

// Config is what a Meter needs.
type Config struct {
	// Open gives the directory of a volume; the Meter closes it.
	// fs.ErrNotExist makes the Meter forget the volume.
	Open func(volume string) (*os.File, error)
	Log  *slog.Logger
}

// Meter knows how much each volume uses. All methods may be called at the same
// time.
type Meter struct {
	open func(volume string) (*os.File, error)
	log  *slog.Logger
	walk func(context.Context, *os.File, *pulse) (Usage, error)
	wake chan struct{}

	mu      sync.Mutex
	volumes map[string]*volume
	hanging map[string]bool // The names of volumes with a walk that hangs, forgotten or not.
}

// volume is what is known of one volume; Meter.mu guards it.
type volume struct {
	name     string
	usage    Usage
	measured time.Time     // Of usage; zero until there is one.
	wanted   bool          // A walk is asked for.
	due      time.Time     // No walk before this.
	deep     bool          // It was told that the value is too low.
	first    chan struct{} // Closed after the first attempt, or when forgotten.
	err      error         // Of the last attempt, or why it was forgotten.
	stop     func(error)   // Ends the walk that is going on.
}

// NewMeter makes a Meter, which measures nothing before Run.
func NewMeter(config Config) *Meter {
	return &Meter{
		open:    config.Open,
		log:     config.Log,
		walk:    paced,
		wake:    make(chan struct{}, 1),
		volumes: map[string]*volume{},
		hanging: map[string]bool{},
	}
}

// Usage gives the newest value at once if there is one, and asks for a newer
// one when it is older than the volume's interval. It waits for nothing but
// the end of the first attempt to measure the volume; the error, also of a
// failed attempt, wraps ErrNotMeasured.
func (m *Meter) Usage(ctx context.Context, name string) (Usage, error) {
	m.mu.Lock()
	v := m.known(name)
	if !time.Now().Before(v.due) {
		m.want(v)
	}
	m.mu.Unlock()

	select {
	case <-v.first:
	default:
		// Only now, so that a value is given even when ctx has ended.
		select {
		case <-v.first:
		case <-ctx.Done():
			return Usage{}, fmt.Errorf("volume %q: %w: %w", name, ErrNotMeasured, ctx.Err())
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.measured.IsZero() {
		return Usage{}, fmt.Errorf("volume %q: %w: %w", name, ErrNotMeasured, v.err)
	}
	return v.usage, nil
}

// Last gives the newest value and when it was measured, false if there is
// none. It never waits and never causes a walk.
func (m *Meter) Last(name string) (Usage, time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.volumes[name]
	if !ok || v.measured.IsZero() {
		return Usage{}, time.Time{}, false
	}
	return v.usage, v.measured, true
}

// Touch says that the volume is new or was changed: it is measured as soon as
// its interval and the other volumes allow.
func (m *Meter) Touch(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.want(m.known(name))
}

// Forget drops what is known of the volume and ends its walk. Those who wait
// for its first value get ErrNotMeasured.
func (m *Meter) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.volumes[name]; ok {
		m.forget(v, errors.New("volume was forgotten"))
	}
}

func (m *Meter) known(name string) *volume {
	v, ok := m.volumes[name]
	if !ok {
		v = &volume{name: name, first: make(chan struct{})}
		m.volumes[name] = v
	}
	return v
}

func (m *Meter) want(v *volume) {
	if v.wanted {
		return
	}
	v.wanted = true
	m.poke()
}

func (m *Meter) poke() {
	select {
	case m.wake <- struct{}{}:
	default: // Run is about to look anyway.
	}
}

func (m *Meter) forget(v *volume, why error) {
	delete(m.volumes, v.name)
	if v.stop != nil {
		v.stop(why)
	}
	v.attempted(why)
}

// attempted records the end of an attempt and lets go who waits for the first.
func (v *volume) attempted(err error) {
	v.err = err
	select {
	case <-v.first:
	default:
		close(v.first)
	}
}

// missing reports whether the volume's directory is not there, as opposed to
// something below it.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
