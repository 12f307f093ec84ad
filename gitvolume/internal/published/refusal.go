package published

import (
	"context"
	"errors"
	"time"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
)

// lingering is how long a publish is remembered that failed. The kubelet comes again
// within some two minutes as long as the pod is there.
const lingering = 10 * time.Minute

// waiter is a pod that a volume was not shown to yet. It is volume.mu's.
type waiter struct {
	pod   podinfo.Pod
	since time.Time // Of the last attempt.
}

// Refuse tells, on the pod and its claim, why a publish failed. A call that only came too
// early is not worth an Event: the kubelet shows its answer, and comes again. Until then
// the volume is kept, for what goes on meanwhile is its own.
func (v *Volumes) Refuse(p Publication, err error) {
	if handle.Check(p.Handle) != nil {
		v.settings.Reports.Refused(report.Subject{Kind: p.Kind, Handle: p.Handle}, report.Pod(p.Pod), err.Error())
		return
	}
	vol := v.enter(p)
	defer v.exit(vol)
	v.refuse(vol, p, err, vol.report.Ends(report.FetchFailed))
}

// refuse is Refuse for a volume whose fetches had succeeded that often when the publish
// began. Another call's may have succeeded since, of which nothing is to be taken back.
func (v *Volumes) refuse(vol *volume, p Publication, err error, fetched int) {
	isFetch := isOfRemote(err)
	vol.mu.Lock()
	defer vol.mu.Unlock()
	switch {
	case isEarly(err) && !isFetch:
	case !isFetch:
		v.settings.Reports.Refused(vol.subject, report.Pod(p.Pod), err.Error())
	case vol.attachment != nil:
		// Other pods see the volume, with which nothing is wrong.
		v.settings.Reports.Unfetched(vol.subject, report.Pod(p.Pod), err.Error())
	default:
		if p.Pod != (podinfo.Pod{}) {
			vol.report.AddPod(report.Pod(p.Pod))
		}
		if !vol.report.RaiseSince(fetched, report.FetchFailed, err.Error()) {
			v.settings.Reports.Unfetched(vol.subject, report.Pod(p.Pod), err.Error())
		}
	}
	// The claim of the PersistentVolume becomes known meanwhile, for the next time.
	vol.waiting[p.Target] = waiter{pod: p.Pod, since: time.Now()}
}

// isEarly tells of the errors that say no more than that a call came too early.
func isEarly(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, keyedmutex.ErrBusy) || errors.Is(err, ErrTooEarly) || errors.Is(err, remote.ErrInProgress)
}

// isOfRemote tells of what a fetch fails with. That an address is refused is no failure of
// one, but of what the volume says.
func isOfRemote(err error) bool {
	if errors.Is(err, remote.ErrInProgress) || errors.Is(err, remote.ErrRefusedAddress) {
		return false
	}
	return remote.IsRemote(err) || errors.Is(err, remote.ErrNoRef) || errors.Is(err, remote.ErrFailed)
}

// served ends the wait of a target. The caller holds mu.
func (vol *volume) served(at string) { delete(vol.waiting, at) }

// tired forgets the pods that were not asked for again. The caller holds mu.
func (vol *volume) tired(now time.Time) {
	for at, w := range vol.waiting {
		if now.Sub(w.since) < lingering {
			continue
		}
		delete(vol.waiting, at)
		if vol.places[at] == nil {
			vol.report.RemovePod(report.Pod(w.pod))
		}
	}
}
