package report_test

import (
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/report"
)

const (
	once    = "once"
	repeats = "repeats"
	never   = ""
)

func TestFaults(t *testing.T) {
	for _, row := range []struct {
		fault   report.Fault
		reason  string
		posted  string
		verdict string
	}{
		{report.PushFailed, "GitVolumePushFailed", repeats, "PushFailed"},
		{report.CommitFailed, "GitVolumePushFailed", repeats, "CommitFailed"},
		{report.MetadataRefused, "GitVolumePushFailed", once, "MetadataRefused"},
		{report.MetadataTooLarge, "GitVolumePushFailed", repeats, "MetadataTooLarge"},
		{report.MetadataUnreadable, "", never, "MetadataUnreadable"},
		{report.FetchFailed, "GitVolumeFetchFailed", repeats, "FetchFailed"},
		{report.Stale, "GitVolumeStale", repeats, "Stale"},
		{report.RefDeleted, "GitVolumeRefDeleted", once, "RefDeleted"},
		{report.UpstreamMoved, "GitVolumeUpstreamMoved", repeats, "UpstreamMoved"},
		{report.Diverged, "GitVolumeDiverged", repeats, "Diverged"},
		{report.ClassUnusable, "GitVolumeUnarmed", repeats, "ClassUnusable"},
		{report.CredentialMissing, "", never, "CredentialMissing"},
		{report.CredentialMalformed, "", never, "CredentialMalformed"},
		{report.WatchDegraded, "GitVolumeWatchDegraded", once, ""},
		{report.TreeUnreadable, "", never, "!TreeUnreadable"},
		{report.SetAside, "", never, "SetAside"},
		{report.TargetNotMounted, "", never, "TargetNotMounted"},
		{report.Unfollowed, "", never, "Unfollowed"},
	} {
		t.Run(string(row.fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { followFault(t, row.fault, row.reason, row.posted, row.verdict) })
		})
	}
}

// followFault raises a fault again and again, changes its message and clears it.
func followFault(t *testing.T, fault report.Fault, reason, posted, wanted string) {
	s := newStation(t)
	v := s.Volume(shop())
	event := func(message string) []string {
		if posted == never {
			return nil
		}
		return []string{"PersistentVolumeClaim/config Warning " + reason + ": " + message}
	}
	repeat := func(message string) []string {
		if posted != repeats {
			return nil
		}
		return event(message)
	}

	v.Raise(fault, "a")
	s.wantPosts(event("a")...)
	wantVerdict(t, v, wanted)
	time.Sleep(59 * time.Second)
	v.Raise(fault, "a")
	s.wantPosts()
	time.Sleep(time.Second)
	v.Raise(fault, "a")
	s.wantPosts(repeat("a")...)
	v.Raise(fault, "a")
	s.wantPosts()
	v.Raise(fault, "b")
	s.wantPosts(event("b")...)
	wantVerdict(t, v, wanted)
	s.wantLogged(`"something is wrong" volume=h1 claim=shop/config fault=`+string(fault), 2)

	v.Clear(fault)
	v.Clear(fault)
	wantVerdict(t, v, "")
	s.wantLogged(`"it is right again" volume=h1 claim=shop/config fault=`+string(fault), 1)
	v.Raise(fault, "b")
	s.wantPosts(event("b")...)

	turns := 0
	if wanted != "" {
		turns = 1
	}
	s.wantLogged("the volume is abnormal", 2*turns)
	s.wantLogged("the volume is well again", turns)
}

func TestMoments(t *testing.T) {
	for moment, kind := range map[report.Moment]string{
		report.Armed: "Normal", report.Unarmed: "Warning", report.Pushed: "Normal", report.Rebased: "Normal",
		report.Healed: "Normal", report.NoPublishSecret: "Warning",
	} {
		t.Run(string(moment), func(t *testing.T) {
			s := newStation(t)
			v := s.Volume(shop())
			v.AddPod(web())
			v.Happened(moment, "4f2a1b0\n")
			s.wantPosts(
				"Pod/web "+kind+" "+string(moment)+`: 4f2a1b0\n`,
				"PersistentVolumeClaim/config "+kind+" "+string(moment)+`: 4f2a1b0\n`)
			s.wantLogged("msg=event volume=h1 claim=shop/config pod=shop/web reason="+string(moment), 1)
			wantVerdict(t, v, "")
		})
	}
}

func TestTheVerdictTurnsOnce(t *testing.T) {
	s := newStation(t)
	v := s.Volume(shop())
	v.Raise(report.Stale, "the remote cannot be reached")
	v.Raise(report.FetchFailed, "the remote cannot be reached")
	v.Raise(report.WatchDegraded, "no more watches")
	wantVerdict(t, v, "FetchFailed Stale")
	s.wantLogged(`msg="the volume is abnormal" volume=h1 claim=shop/config reasons=Stale message="the remote cannot be reached"`, 1)
	s.wantLogged("the volume is abnormal", 1)
	v.Clear(report.FetchFailed)
	s.wantLogged("the volume is well again", 0)
	wantVerdict(t, v, "Stale")
	v.Clear(report.Stale, report.FetchFailed, report.PushFailed)
	wantVerdict(t, v, "")
	s.wantLogged("the volume is well again", 1)
	s.wantLogged("it is right again", 2)
}
