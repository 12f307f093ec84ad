package report

import "liken.sh/csicommon/event"

// Fault is something wrong with a volume that lasts until it is cleared. Its text is the
// reason that NodeGetVolumeHealth gives.
type Fault string

// The faults that are raised and cleared as they begin and end.
const (
	// PushFailed: a push did not arrive, or could not be tried. Each time it is raised
	// counts as one more in git_csi_push_failures_total.
	PushFailed Fault = "PushFailed"
	// CommitFailed: what the application wrote cannot be committed.
	CommitFailed Fault = "CommitFailed"
	// MetadataRefused: the branch arrived, the record of modes and owners did not.
	MetadataRefused Fault = "MetadataRefused"
	// MetadataUnreadable: the record of modes and owners that upstream has is damaged.
	MetadataUnreadable Fault = "MetadataUnreadable"
	// MetadataTooLarge: the record of modes and owners cannot be written, and the branch goes
	// on without.
	MetadataTooLarge Fault = "MetadataTooLarge"
	// FetchFailed: what upstream has is not known.
	FetchFailed Fault = "FetchFailed"
	// Stale: the volume was started with what the node had, without a fetch.
	Stale Fault = "Stale"
	// RefDeleted: the remote has the ref no more.
	RefDeleted Fault = "RefDeleted"
	// UpstreamMoved: upstream moved, and the tree holds writes that are not committed.
	UpstreamMoved Fault = "UpstreamMoved"
	// Diverged: the volume's commits go to its side branch.
	Diverged Fault = "Diverged"
	// ClassUnusable: the claim's class is unknown, malformed or another driver's.
	ClassUnusable Fault = "ClassUnusable"
	// CredentialMissing: the volume waits for its credential.
	CredentialMissing Fault = "CredentialMissing"
	// CredentialMalformed: the Secret cannot be used, the last good one still is.
	CredentialMalformed Fault = "CredentialMalformed"
	// SecretsDiffer: PersistentVolumes of one handle bring Secrets that differ, of which one
	// counts.
	SecretsDiffer Fault = "SecretsDiffer"
	// WatchDegraded: changes are found by scans, because file system events fail to tell
	// of them.
	WatchDegraded Fault = "WatchDegraded"
	// TreeUnreadable: the tree cannot be read.
	TreeUnreadable Fault = "TreeUnreadable"
	// SetAside: the tree was not the one the record names, and was set aside.
	SetAside Fault = "SetAside"
	// TargetNotMounted: the tree is not mounted where the pod has it.
	TargetNotMounted Fault = "TargetNotMounted"
	// Unfollowed: the volume is left alone, because the process ended twice in work on it.
	Unfollowed Fault = "Unfollowed"
)

// The faults that follow from figures and from what is left out.
const (
	fileSkipped     Fault = "FileSkipped"
	pathsPending    Fault = "PathsPending"
	unpushedTooLong Fault = "UnpushedTooLong"
)

// Severity says what a fault means for who uses the volume.
type Severity int

// A volume can be used with a fault that is Degraded; with one that is Inaccessible it
// cannot be read.
const (
	Degraded Severity = iota
	Inaccessible
)

// nature is how a fault is told.
type nature struct {
	// event is the reason of its Events; empty: it makes none.
	event string
	// repeats tells that the Event counts up while the fault lasts and is raised again.
	repeats bool
	// harmless faults are no part of the verdict.
	harmless bool
	severity Severity
}

func natureOf(f Fault) nature {
	switch f {
	// Ways in which what the application wrote does not get to the remote.
	case PushFailed, CommitFailed, MetadataTooLarge:
		return nature{event: reasonPushFailed, repeats: true}
	case MetadataRefused:
		return nature{event: reasonPushFailed}
	case FetchFailed:
		return nature{event: "GitVolumeFetchFailed", repeats: true}
	case Stale:
		return nature{event: "GitVolumeStale", repeats: true}
	case RefDeleted:
		return nature{event: "GitVolumeRefDeleted"}
	case UpstreamMoved:
		return nature{event: "GitVolumeUpstreamMoved", repeats: true}
	case Diverged:
		return nature{event: "GitVolumeDiverged", repeats: true}
	case ClassUnusable:
		return nature{event: string(Unarmed), repeats: true}
	case WatchDegraded:
		// Changes are found all the same, only later.
		return nature{event: "GitVolumeWatchDegraded", harmless: true}
	case fileSkipped:
		return nature{event: "GitVolumeFileSkipped"}
	case pathsPending:
		return nature{event: "GitVolumePending"}
	case TreeUnreadable:
		return nature{severity: Inaccessible}
	}
	return nature{}
}

const reasonPushFailed = "GitVolumePushFailed"

// Moment is something that happened to a volume and is over. Its text is the reason of
// its Event.
type Moment string

// The moments. Which of them are warnings, Happened knows.
const (
	// Armed: the volume is committed from now on.
	Armed Moment = "GitVolumeArmed"
	// Unarmed: the volume is not committed, as its watch starts or from now on.
	Unarmed Moment = "GitVolumeUnarmed"
	// Pushed: commits arrived at the remote.
	Pushed Moment = "GitVolumePushed"
	// Rebased: the volume's commits were replayed on upstream's.
	Rebased Moment = "GitVolumeRebased"
	// Healed: the volume is back on its ref.
	Healed Moment = "GitVolumeHealed"
	// NoPublishSecret: a restarted driver will have no credential for the volume.
	NoPublishSecret Moment = "GitVolumeNoPublishSecret"
)

// reasonRefused is of a publish that is refused for good, as long as nobody changes what
// was asked.
const reasonRefused = "GitVolumeRefused"

func (m Moment) kind() event.Type {
	switch m {
	case Unarmed, NoPublishSecret:
		return event.Warning
	}
	return event.Normal
}
