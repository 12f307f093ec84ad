package report_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/report"
)

func TestWhomAnEventIsAbout(t *testing.T) {
	other := report.Pod{Namespace: "shop", Name: "job", UID: "p-2"}
	for name, row := range map[string]struct {
		subject report.Subject
		pods    []report.Pod
		want    []string
	}{
		"a claim":                    {shop(), nil, []string{"PersistentVolumeClaim/config"}},
		"pods and a claim":           {shop(), []report.Pod{web(), other}, []string{"Pod/web", "Pod/job", "PersistentVolumeClaim/config"}},
		"the same pod twice":         {shop(), []report.Pod{web(), web()}, []string{"Pod/web", "PersistentVolumeClaim/config"}},
		"a claim that is not known":  {report.Subject{Volume: "pv-1", Kind: attributes.KindWriteable}, nil, []string{"PersistentVolume/pv-1"}},
		"that, with a pod":           {report.Subject{Volume: "pv-1", Kind: attributes.KindWriteable}, []report.Pod{web()}, []string{"Pod/web"}},
		"an inline volume":           {report.Subject{Volume: "code", Namespace: "shop"}, []report.Pod{web()}, []string{"Pod/web"}},
		"an inline volume of nobody": {report.Subject{Volume: "code", Namespace: "shop"}, nil, nil},
		"nothing is known":           {report.Subject{Handle: "h", Kind: attributes.KindWriteable}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t)
			v := s.Volume(row.subject)
			for _, pod := range row.pods {
				v.AddPod(pod)
			}
			v.Happened(report.Armed, "by a class")
			var want []string
			for _, about := range row.want {
				want = append(want, about+" Normal GitVolumeArmed: by a class")
			}
			s.wantPosts(want...)
			s.wantLogged("msg=event", 1)
		})
	}
}

func TestPodsComeAndGo(t *testing.T) {
	s := newStation(t)
	v := s.Volume(shop())
	v.Raise(report.Stale, "unreachable")
	v.Raise(report.FetchFailed, "unreachable")
	v.Raise(report.CredentialMissing, "none yet")
	s.posts.take()

	v.AddPod(web())
	s.wantPosts("Pod/web Warning GitVolumeFetchFailed: unreachable", "Pod/web Warning GitVolumeStale: unreachable")
	v.AddPod(web())
	s.wantPosts()
	v.RemovePod(web())
	v.RemovePod(web())
	v.Happened(report.Armed, "x")
	s.wantPosts("PersistentVolumeClaim/config Normal GitVolumeArmed: x")

	// Of another pod with the same name nothing was told.
	again := web()
	again.UID = "p-9"
	v.AddPod(again)
	v.RemovePod(web())
	s.posts.take()
	v.Happened(report.Armed, "x")
	s.wantPosts("Pod/web Normal GitVolumeArmed: x", "PersistentVolumeClaim/config Normal GitVolumeArmed: x")
}

func TestAClaimThatIsKnownLate(t *testing.T) {
	s := newStation(t)
	v := s.Volume(report.Subject{Kind: attributes.KindWriteable, Handle: "h1", Volume: "pv-1"})
	v.Happened(report.Armed, "x")
	s.wantPosts("PersistentVolume/pv-1 Normal GitVolumeArmed: x")
	v.SetSubject(shop())
	v.Happened(report.Armed, "x")
	s.wantPosts("PersistentVolumeClaim/config Normal GitVolumeArmed: x")
	s.wantScrape("git_csi_volume_abnormal", `git_csi_volume_abnormal{claim="config",namespace="shop",volume="pv-1"} 0`)
}

func TestWithoutARecorderTheLogHasIt(t *testing.T) {
	s := newStation(t, func(settings *report.Settings) { settings.Recorder = nil })
	v := s.Volume(shop())
	v.Happened(report.Pushed, "4f2a1b0")
	v.Raise(report.PushFailed, "refused")
	s.Refused(shop(), web(), "no")
	s.wantLogged("message=4f2a1b0", 1)
	s.wantLogged("fault=PushFailed message=refused", 1)
	s.wantLogged(`msg="the volume is refused" volume=h1 claim=shop/config pod=shop/web message=no`, 1)
}

func TestMessagesAreBoundedAndPrintable(t *testing.T) {
	s := newStation(t)
	v := s.Volume(shop())
	hostile := "\x1b[2J\xff\n" + strings.Repeat("漢", 1000)
	v.Raise(report.PushFailed, hostile)
	v.Happened(report.Pushed, hostile)
	v.Skipped([]report.Skip{{Path: hostile, Why: hostile}, {Path: hostile + "x", Why: hostile}})
	s.Refused(shop(), web(), hostile)
	posted := s.posts.take()
	if len(posted) != 5 {
		t.Fatalf("%d Events", len(posted))
	}
	for _, line := range posted {
		_, message, _ := strings.Cut(line, ": ")
		if len(message) > 1024 || !utf8.ValidString(message) || strings.ContainsAny(message, "\x1b\n") {
			t.Errorf("posted %d bytes: %q", len(message), message)
		}
	}
	for _, reason := range v.Abnormal() {
		if len(reason.Message) > 1024 || !utf8.ValidString(reason.Message) {
			t.Errorf("the health says %q", reason.Message)
		}
	}
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t)
		v := s.Volume(shop())
		v.AddPod(web())
		second := report.Pod{Namespace: "shop", Name: "second", UID: "p-2"}
		refused := []string{"Pod/second Warning GitVolumeRefused: held by web", "PersistentVolumeClaim/config Warning GitVolumeRefused: held by web"}

		s.Refused(shop(), second, "held by web")
		s.wantPosts(refused...)
		wantVerdict(t, v, "") // The one that has it can use it.
		for range 59 {
			time.Sleep(time.Second)
			s.Refused(shop(), second, "held by web")
		}
		s.wantPosts()
		s.Refused(shop(), second, "another reason")
		s.Refused(shop(), report.Pod{Namespace: "shop", Name: "second", UID: "p-3"}, "held by web")
		s.posts.take()
		time.Sleep(time.Second)
		s.Refused(shop(), second, "held by web")
		s.wantPosts(refused...)

		s.Refused(shop(), report.Pod{}, "no pod is known")
		s.wantPosts("PersistentVolumeClaim/config Warning GitVolumeRefused: no pod is known")
	})
}

func TestAfterClose(t *testing.T) {
	s := newStation(t)
	v := s.Volume(shop())
	v.Close()
	v.Close()
	v.Happened(report.Pushed, "a last commit")
	s.wantPosts("PersistentVolumeClaim/config Normal GitVolumePushed: a last commit")
	s.wantScrape("git_csi_volume_abnormal")
}

// Everything at once, for the race detector; and nothing is lost or doubled of what each
// volume says.
func TestConcurrency(t *testing.T) {
	s := newStation(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			subject := shop()
			subject.Handle, subject.Claim = fmt.Sprint("h", n), fmt.Sprint("c", n)
			for round := range 20 {
				v := s.Volume(subject)
				v.AddPod(web())
				v.Raise(report.PushFailed, fmt.Sprint("refused in round ", round))
				v.Skipped([]report.Skip{{"f", "too large"}})
				v.Update(func(f *report.Figures) { f.Pending, f.PendingPath = 1, "f" })
				v.Abnormal()
				v.RemovePod(web())
				v.Clear(report.PushFailed)
				s.Refused(subject, web(), "no")
				s.Fetched(fmt.Sprint("host/", n), time.Second, nil)
				s.Committed(time.Millisecond)
				v.Close()
			}
		})
	}
	all.Go(func() {
		for range 20 {
			s.exposition()
		}
	})
	all.Wait()
	pushFailed := 0
	for _, line := range s.posts.take() {
		if strings.Contains(line, "GitVolumePushFailed") {
			pushFailed++
		}
	}
	if want := 8 * 20 * 2; pushFailed != want {
		t.Errorf("%d Events of failed pushes, want %d", pushFailed, want)
	}
	s.wantScrape("git_csi_armed")
}

// TestRaiseSince: who learns late of a fault that is over by now does not have it last again.
func TestRaiseSince(t *testing.T) {
	s := newStation(t)
	v := s.Volume(shop())
	before := v.Ends(report.FetchFailed)
	if !v.RaiseSince(before, report.FetchFailed, "away") {
		t.Error("it is not raised, and nobody said that it is over")
	}
	wantVerdict(t, v, "FetchFailed")
	v.Clear(report.FetchFailed)
	if v.RaiseSince(before, report.FetchFailed, "away") {
		t.Error("it is raised by who began before it was over")
	}
	wantVerdict(t, v, "")
	now := v.Ends(report.FetchFailed)
	v.Clear(report.Stale)
	if !v.RaiseSince(now, report.FetchFailed, "away again") {
		t.Error("it is not raised by who began since")
	}
	wantVerdict(t, v, "FetchFailed")
}
