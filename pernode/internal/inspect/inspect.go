// Package inspect looks at every copy now and then, so that the kubelet's
// questions about usage and health are answered from memory.
//
// It must never change a copy, and a disk that does not answer must hang its one
// goroutine alone, never whoever asks for a verdict.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/usage"
	"liken.sh/pernode/internal/copies"
)

const (
	// lookEvery is how often each copy is looked at: an open, a read of one
	// directory entry and a statfs.
	lookEvery = 30 * time.Second
	// settle is how long after a publish or unpublish its copy is looked at, so
	// that a burst of calls costs one look and none of them waits beside it.
	settle = time.Second
	// hungAfter is how long one look may take before its copy counts as one that
	// cannot be read.
	hungAfter = 30 * time.Second
	// fullBelow is the share of a file system's blocks or inodes, in 1/n, that
	// has to be free.
	fullBelow = 100
)

// Severity says what a condition means for who uses the copy.
type Severity int

// A copy can be used with Degraded; with Inaccessible it cannot be read.
const (
	Degraded Severity = iota
	Inaccessible
)

// The reasons of conditions, as NodeGetVolumeHealth reports them.
const (
	CopyUnreadable   = "CopyUnreadable"
	CopyDeleted      = "CopyDeleted"
	TargetNotMounted = "TargetNotMounted"
	StoreFull        = "StoreFull"
	StoreReadOnly    = "StoreReadOnly"
)

// Condition is one thing that is wrong with a copy.
type Condition struct {
	Severity Severity
	Reason   string
	Message  string
}

// Store is what inspecting needs of the copies; *copies.Store is it.
type Store interface {
	List() ([]string, error)
	Open(volume string) (*os.File, error)
	State(volume string) (copies.State, error)
}

// Config is what an Inspector needs.
type Config struct {
	Store Store
	Log   *slog.Logger
}

// Inspector keeps the newest verdict and the newest usage of each copy.
type Inspector struct {
	config Config
	meter  *usage.Meter
	wake   chan struct{}

	mu       sync.Mutex
	touched  map[string]bool
	verdicts map[string][]Condition
	looking  string    // the copy that is being looked at
	since    time.Time // since when
}

// New makes an Inspector that knows nothing before Run.
func New(config Config) *Inspector {
	return &Inspector{
		config:   config,
		meter:    usage.NewMeter(usage.Config{Open: config.Store.Open, Log: config.Log}),
		wake:     make(chan struct{}, 1),
		touched:  make(map[string]bool),
		verdicts: make(map[string][]Condition),
	}
}

// Run looks until ctx ends.
func (i *Inspector) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { i.meter.Run(ctx) })
	defer group.Wait()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	i.lookAtAll(ctx, i.meter.Touch)
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.wake:
			settled = time.After(settle)
		case <-settled:
			i.lookAtTouched()
		case <-ticker.C:
			i.lookAtAll(ctx, func(string) {})
		}
	}
}

// Touch says that a volume was published or unpublished.
func (i *Inspector) Touch(volume string) {
	i.meter.Touch(volume)
	i.mu.Lock()
	i.touched[volume] = true
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

func (i *Inspector) lookAtTouched() {
	i.mu.Lock()
	touched := i.touched
	i.touched = make(map[string]bool)
	i.mu.Unlock()
	for volume := range touched {
		i.look(volume)
	}
}

// Forget drops what is known of a copy that was removed.
func (i *Inspector) Forget(volume string) {
	i.meter.Forget(volume)
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.verdicts, volume)
}

// Usage returns what a copy uses, waiting for its first measurement until ctx
// ends; then the error wraps usage.ErrNotMeasured.
func (i *Inspector) Usage(ctx context.Context, volume string) (usage.Usage, error) {
	return i.meter.Usage(ctx, volume)
}

// LastUsage returns the newest measurement without ever waiting.
func (i *Inspector) LastUsage(volume string) (usage.Usage, bool) {
	u, _, known := i.meter.Last(volume)
	return u, known
}

// Verdict returns what is wrong with a volume's copy, sorted by reason and each
// reason once; nothing for one that is well or not known. It never touches the
// disk.
func (i *Inspector) Verdict(volume string) []Condition {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.looking == volume && time.Since(i.since) > hungAfter {
		return []Condition{{Inaccessible, CopyUnreadable, "the disk has not answered a look at the copy"}}
	}
	return i.verdicts[volume]
}

func (i *Inspector) lookAtAll(ctx context.Context, also func(volume string)) {
	all, err := i.config.Store.List()
	if err != nil {
		i.config.Log.Error("the copies cannot be listed", "error", err)
		return
	}
	for _, volume := range all {
		if ctx.Err() != nil {
			return
		}
		also(volume)
		i.look(volume)
	}
}

// look judges one copy. It is the only place where a dead disk hangs.
func (i *Inspector) look(volume string) {
	i.mark(volume, time.Now())
	conditions := i.judge(volume)
	i.mark("", time.Time{})
	slices.SortFunc(conditions, func(a, b Condition) int { return cmp.Compare(a.Reason, b.Reason) })
	i.mu.Lock()
	defer i.mu.Unlock()
	if before := i.verdicts[volume]; !slices.Equal(before, conditions) {
		i.logTurn(volume, conditions)
	}
	if len(conditions) == 0 {
		delete(i.verdicts, volume)
		return
	}
	i.verdicts[volume] = conditions
}

func (i *Inspector) mark(volume string, since time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.looking, i.since = volume, since
}

func (i *Inspector) logTurn(volume string, conditions []Condition) {
	if len(conditions) == 0 {
		i.config.Log.Info("a copy is well again", "volume", volume)
	}
	for _, c := range conditions {
		i.config.Log.Warn("a copy is not well", "volume", volume, "reason", c.Reason, "error", c.Message)
	}
}

func (i *Inspector) judge(volume string) []Condition {
	state, err := i.config.Store.State(volume)
	if err != nil {
		return []Condition{{Inaccessible, CopyUnreadable, err.Error()}}
	}
	var conditions []Condition
	if state.Deleted {
		conditions = append(conditions, Condition{Degraded, CopyDeleted,
			"somebody moved or removed the copy's directory while a pod has it: what the pod writes is not in the store"})
	}
	if state.Unmounted {
		conditions = append(conditions, Condition{Degraded, TargetNotMounted,
			fmt.Sprintf("somebody unmounted %q, the pod has to be started again", state.Hold.Target)})
	}
	if !state.Exists {
		return conditions
	}
	return append(conditions, i.judgeDir(volume)...)
}

func (i *Inspector) judgeDir(volume string) []Condition {
	dir, err := i.config.Store.Open(volume)
	if errors.Is(err, copies.ErrNoCopy) {
		return nil
	}
	if err != nil {
		return []Condition{{Inaccessible, CopyUnreadable, err.Error()}}
	}
	defer dir.Close()
	if _, err := dir.ReadDir(1); err != nil && !errors.Is(err, io.EOF) {
		return []Condition{{Inaccessible, CopyUnreadable, err.Error()}}
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return []Condition{{Inaccessible, CopyUnreadable, err.Error()}}
	}
	return judgeSpace(st)
}

func judgeSpace(st unix.Statfs_t) []Condition {
	var conditions []Condition
	if st.Flags&unix.ST_RDONLY != 0 {
		conditions = append(conditions, Condition{Degraded, StoreReadOnly, "the store's file system is read-only"})
	}
	switch {
	case st.Blocks > 0 && st.Bavail < st.Blocks/fullBelow:
		conditions = append(conditions, Condition{Degraded, StoreFull, "less than 1 % of the store's file system is available"})
	case st.Files > 0 && st.Ffree < st.Files/fullBelow:
		conditions = append(conditions, Condition{Degraded, StoreFull, "less than 1 % of the store's inodes are free"})
	}
	return conditions
}
