package writeable

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/worktree"
)

// Report is told what becomes of the volume; *report.Volume is one.
type Report interface {
	Raise(f report.Fault, message string)
	Clear(faults ...report.Fault)
	Happened(m report.Moment, message string)
	Skipped(all []report.Skip)
	Update(change func(*report.Figures))
}

// Durations is told how long things took; *report.Reports is one.
type Durations interface {
	Committed(took time.Duration)
	Rebased(took time.Duration)
	Pushed(took time.Duration)
}

// short is a commit or a branch as people are told it.
func short(what any) string {
	text := strings.TrimPrefix(fmt.Sprint(what), "refs/heads/")
	if _, isID := what.(object.ID); isID {
		return text[:7]
	}
	return text
}

func (v *Volume) sayArming() {
	v.sayFigures()
	v.sayRecordFits()
	unarmed := v.Arming.Unarmed
	switch {
	case unarmed == nil:
		v.Report.Clear(report.ClassUnusable)
		v.Report.Happened(report.Armed, fmt.Sprintf("class %s is in force: what is written is committed to %s", v.Arming.Class, short(v.branch())))
	case v.Arming.Class == "" || errors.Is(unarmed, policy.ErrPaused):
		v.Report.Clear(report.ClassUnusable)
		v.Report.Happened(report.Unarmed, fmt.Sprintf("what is written is not committed: %v", unarmed))
	default:
		v.Report.Raise(report.ClassUnusable, fmt.Sprintf("what is written is not committed: %v", unarmed))
	}
}

func (v *Volume) sayFigures() {
	v.Report.Update(func(f *report.Figures) {
		f.Armed = v.Arming.Unarmed == nil
		f.Pending, f.PendingPath = v.pending, v.pendingPath
		f.MaxLatency = v.Arming.Policy.MaxLatency
		f.Unpushed, f.UnpushedSince = v.ahead, v.clock.oldestUnpushed
	})
}

// sayLooked says what a look at the tree found.
func (v *Volume) sayLooked(result *worktree.Result) {
	v.Report.Clear(report.TreeUnreadable)
	if v.Arming.Unarmed != nil || v.pending == 0 {
		v.Report.Clear(report.CommitFailed)
	}
	v.sayFigures()
	if len(result.Skipped) == 0 && !v.skips {
		return
	}
	var all []report.Skip
	for path, reason := range result.Memory.Skipped() {
		all = append(all, report.Skip{Path: path, Why: reason.String()})
	}
	v.skips = len(all) > 0
	v.Report.Skipped(all)
}

func (v *Volume) sayCommitted(took time.Duration) {
	v.ahead++
	v.Durations.Committed(took)
}

// sayStuck says that something could not be done on this machine.
func (v *Volume) sayStuck(err error) {
	if errors.Is(err, ErrReplaced) {
		v.Report.Raise(report.SetAside, fmt.Sprintf("nothing is committed any more: %v", err))
		return
	}
	v.Report.Raise(report.CommitFailed, fmt.Sprintf("what was written cannot be committed: %v", err))
}

func (v *Volume) sayWatch(state watch.State) {
	if state.Degraded {
		v.Report.Raise(report.WatchDegraded, "changes are looked for from time to time, since file-system events cannot be relied on: "+state.Reason)
		return
	}
	v.Report.Clear(report.WatchDegraded)
}

func (v *Volume) sayFetched() {
	v.clock.askAt, v.clock.asks = time.Time{}, 0
	v.Report.Clear(report.Stale, report.FetchFailed, report.CredentialMissing)
}

func (v *Volume) sayStale(err error) {
	v.clock.unasked(time.Now(), v.Jitter())
	v.Report.Raise(report.Stale, fmt.Sprintf("the application has the tree of this node, as the remote could not be asked: %v", err))
}

func (v *Volume) sayBegun() {
	v.countAhead()
	if v.position.Diverged {
		v.sayDiverged(errOtherNode)
	}
}

func (v *Volume) sayLost() {
	v.Report.Raise(report.SetAside, "the tree of this node was lost; it was made again of the last commit")
}

// sayGone says that the ref is not there, unless it never was.
func (v *Volume) sayGone(up upstream) {
	if v.position.Followed || !up.isEmpty() {
		v.Report.Raise(report.RefDeleted, fmt.Sprintf("%s is gone from the remote: nothing is pushed until it exists again", short(v.Ref)))
	}
}

func (v *Volume) sayThere() { v.Report.Clear(report.RefDeleted) }

func (v *Volume) sayUpstreamFollowed() { v.Report.Clear(report.UpstreamMoved) }

func (v *Volume) sayUpstreamMoved(to object.ID) {
	v.Report.Raise(report.UpstreamMoved, fmt.Sprintf("%s moved to %s, and the tree has changes that are not committed: it is left as it is", short(v.Ref), short(to)))
}

// sayRebased says what moved with the branch: own commits onto its new tip, and away from the
// tree what others took back of it, down from the commit that it was at.
func (v *Volume) sayRebased(replayed int, onto, takenBack object.ID) {
	v.Report.Clear(report.UpstreamMoved, report.RefDeleted)
	v.countAhead()
	var all []string
	if replayed > 0 {
		all = append(all, fmt.Sprintf("%d %s onto %s of %s", replayed, plural(replayed, "commit"), short(onto), short(v.Ref)))
	}
	if !takenBack.IsZero() {
		all = append(all, fmt.Sprintf("%s was forced from %s to %s: what was taken back there is gone from the tree too",
			short(v.Ref), short(takenBack), short(onto)))
	}
	if len(all) > 0 {
		v.Report.Happened(report.Rebased, strings.Join(all, "; "))
	}
}

func (v *Volume) sayDiverged(why error) {
	v.countAhead()
	var conflict *history.Conflict
	if errors.As(why, &conflict) {
		why = conflict
	}
	v.Report.Raise(report.Diverged, fmt.Sprintf("the volume's commits go to the branch %s until it is merged into %s: %v", short(v.Side), short(v.Ref), why))
}

// errBefore is why a volume is diverged that was when the process began.
var errBefore = errors.New("it diverged before the driver was started")

func (v *Volume) sayHealed(up upstream, side object.ID) {
	v.Report.Clear(report.Diverged, report.UpstreamMoved, report.RefDeleted, report.PushFailed)
	v.countAhead()
	message := fmt.Sprintf("%s has what was on %s: the volume is back on it", short(v.Ref), short(v.Side))
	switch {
	case up.side.IsZero() || up.side == side:
	case up.side == v.position.Left:
		message += "; the branch stays"
	default:
		message += "; the branch stays, as others put commits on it"
	}
	v.Report.Happened(report.Healed, message)
}

func (v *Volume) saySideKept(err error) {
	v.Log.Warn("the side branch is not needed any more and could not be deleted", "branch", short(v.Side), "error", err)
}

// sayPushed says that all arrived: what lies between where the branch was and the tip.
func (v *Volume) sayPushed(took time.Duration) {
	v.ahead = 0
	v.Durations.Pushed(took)
	v.Report.Clear(report.PushFailed, report.CredentialMissing, report.RefDeleted)
	v.sayFetched()
	v.sayFigures()
	v.Report.Update(func(f *report.Figures) { f.LastPush = time.Now() })
	paths := 0
	if before, err := v.commitTree(v.sentOver); err == nil {
		if differences, err := v.Repository.Diff(before, v.tipTree); err == nil {
			paths = len(differences)
		}
	}
	v.Report.Happened(report.Pushed, fmt.Sprintf("%s to %s, %d %s", short(v.position.Tip), short(v.branch()), paths, plural(paths, "path")))
}

// sayUpToDate says that the remote has all there is, though nothing was sent.
func (v *Volume) sayUpToDate() {
	v.ahead = 0
	v.Report.Clear(report.PushFailed, report.CredentialMissing, report.RefDeleted)
	v.sayFigures()
}

func (v *Volume) sayPushFailed(err error) {
	v.sayFigures()
	switch {
	case errors.Is(err, access.ErrNoCredential):
		v.Report.Raise(report.CredentialMissing, "the volume waits for its credential, which comes with the next publish")
	case errors.Is(err, ErrRefDeleted):
		v.Report.Raise(report.RefDeleted, fmt.Sprintf("%s is gone from the remote: nothing is pushed until it exists again", short(v.Ref)))
	default:
		v.Report.Raise(report.PushFailed, fmt.Sprintf("%s: %v", short(v.branch()), err))
	}
}

func (v *Volume) sayRecorded() { v.Report.Clear(report.MetadataRefused, report.MetadataUnreadable) }

func (v *Volume) sayRecordRefused(err error) {
	v.Report.Raise(report.MetadataRefused, fmt.Sprintf("modes, owners and empty directories are not kept on the remote, and offered again in an hour: %v", err))
}

// sayRecordFits says whether the volume's record can be written.
func (v *Volume) sayRecordFits() {
	if !v.overfull || !v.keepsRecord() {
		v.Report.Clear(report.MetadataTooLarge)
		return
	}
	v.Report.Raise(report.MetadataTooLarge, fmt.Sprintf(
		"modes, owners and empty directories are not kept on the remote as they are now: their record would have more than %d MiB; files are committed and pushed",
		metadata.MaxSize>>20))
}

func (v *Volume) sayRecordLost(err error) {
	v.Report.Raise(report.MetadataUnreadable, fmt.Sprintf("the record of modes and owners is made anew: %v", err))
}

func (v *Volume) sayRecordKept(err error) {
	v.Report.Raise(report.MetadataUnreadable, fmt.Sprintf("modes and owners are neither kept nor brought back: %v", err))
}

// sayRefused says what of a commit no tree can have.
func (v *Volume) sayRefused(refused []worktree.Skip) {
	for _, skip := range refused {
		v.Log.Warn("a path of the repository is left out of the tree", "path", printable(skip.Path), "why", skip.Reason.String())
	}
}

// sayKeptHere says that nobody will bring the credential to a volume that stops.
func (v *Volume) sayKeptHere(err error) {
	if errors.Is(err, access.ErrNoCredential) {
		v.Report.Raise(report.PushFailed, fmt.Sprintf("%s: what was committed stays on this node until the next start: %v", short(v.branch()), err))
	}
}

// sayStopped says how much of the volume stays on this node alone.
func (v *Volume) sayStopped() {
	if v.position.HasUnpushed() {
		v.Log.Warn("the volume stops with commits that are on this node alone", "commits", v.ahead, "tip", v.position.Tip.String())
	}
}

// countAhead counts the commits that the remote lacks.
func (v *Volume) countAhead() {
	v.ahead = 0
	if own, err := v.Repository.Own(v.position.Published(), v.position.Tip); err == nil {
		v.ahead = len(own)
	}
	v.sayFigures()
}

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}
