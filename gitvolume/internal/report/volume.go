package report

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"liken.sh/csicommon/event"
)

// repeatEvery is how often the Event of a lasting fault counts up at most.
const repeatEvery = time.Minute

// Volume reports one volume. Its methods can be called by any goroutine.
type Volume struct {
	reports *Reports

	mu      sync.Mutex
	subject Subject
	pods    []Pod
	faults  map[Fault]lasting
	// ends is how often faults were said to be over.
	ends         map[Fault]int
	figures      Figures
	skipped      skipped
	pushFailures int64
	// isAbnormal is the verdict that the log told last.
	isAbnormal bool
}

// lasting is a fault that is raised.
type lasting struct {
	message string
	posted  time.Time
}

// SetSubject replaces what is known of the volume: its claim may be known late, and be
// another after a while.
func (v *Volume) SetSubject(s Subject) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.subject = s
}

// AddPod has the volume's Events be about the pod too, and tells it what is wrong already.
// A pod that is known changes nothing.
func (v *Volume) AddPod(p Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Contains(v.pods, p) {
		return
	}
	v.pods = append(v.pods, p)
	for _, f := range slices.Sorted(maps.Keys(v.faults)) {
		if reason := natureOf(f).event; reason != "" {
			v.reports.post(event.Warning, reason, v.faults[f].message, p.object())
		}
	}
}

// RemovePod ends what AddPod began.
func (v *Volume) RemovePod(p Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pods = slices.DeleteFunc(v.pods, func(known Pod) bool { return known == p })
}

// Raise says that the fault began or still lasts, and is to be called each time that is
// found. The message must be the same while the same is wrong: another is an Event at
// once, the same one counts up, at most once a minute.
func (v *Volume) Raise(f Fault, message string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f == PushFailed {
		v.pushFailures++
	}
	v.raise(f, message)
	v.judge()
}

// Ends is how often a fault was said to be over, be it that it did not last. It is for
// RaiseSince.
func (v *Volume) Ends(f Fault) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ends[f]
}

// RaiseSince is Raise for who learned of the fault in work that began when Ends was this:
// what others said to be over since does not begin anew. It tells whether it was raised.
func (v *Volume) RaiseSince(ends int, f Fault, message string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ends[f] != ends {
		return false
	}
	v.raise(f, message)
	v.judge()
	return true
}

func (v *Volume) raise(f Fault, message string) {
	message = event.Message(message)
	is, now := natureOf(f), time.Now()
	fault, known := v.faults[f]
	isNews := !known || fault.message != message
	if isNews {
		v.log().Warn("something is wrong", "fault", string(f), "message", message)
		if is.event == "" && v.reports.settings.Unposted != nil {
			v.reports.settings.Unposted(message)
		}
	}
	if is.event != "" && (isNews || is.repeats && now.Sub(fault.posted) >= repeatEvery) {
		v.reports.post(event.Warning, is.event, message, v.about()...)
		fault.posted = now
	}
	fault.message = message
	v.faults[f] = fault
}

// Clear says that the faults are over, if they lasted.
func (v *Volume) Clear(faults ...Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range faults {
		v.clear(f)
	}
	v.judge()
}

func (v *Volume) clear(f Fault) {
	v.ends[f]++
	if _, known := v.faults[f]; known {
		delete(v.faults, f)
		v.log().Info("it is right again", "fault", string(f))
	}
}

// Happened says what happened to the volume.
func (v *Volume) Happened(m Moment, message string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	message = event.Message(message)
	write := v.log().Info
	if m.kind() == event.Warning {
		write = v.log().Warn
	}
	write("event", "reason", string(m), "message", message)
	v.reports.post(m.kind(), string(m), message, v.about()...)
}

// Close ends the volume's series. It can be called again.
func (v *Volume) Close() { v.reports.forget(v) }

func (v *Volume) about() []event.Object { return v.subject.objects(v.pods...) }

func (v *Volume) log() *slog.Logger {
	// More than one pod would be a list in each line, and none of them the cause.
	if len(v.pods) == 1 {
		return v.subject.named(v.reports.settings.Log, v.pods[0])
	}
	return v.subject.named(v.reports.settings.Log)
}
