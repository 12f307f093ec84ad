package report_test

import (
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/report"
)

// Nobody calls anything at the moment a commit gets too old.
func TestUnpushedTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t)
		v := s.Volume(shop())
		v.Update(func(f *report.Figures) {
			f.Armed, f.Unpushed, f.UnpushedSince, f.MaxLatency = true, 2, time.Now(), 5*time.Minute
		})
		const series = `git_csi_volume_abnormal{claim="config",namespace="shop",volume="pv-1"}`
		time.Sleep(5 * time.Minute)
		wantVerdict(t, v, "")
		s.wantScrape(series, series+" 0")
		s.wantLogged("the volume is abnormal", 0)

		time.Sleep(time.Second)
		s.wantScrape(series, series+" 1")
		wantVerdict(t, v, "UnpushedTooLong")
		s.wantScrape(series, series+" 1")
		s.wantLogged("the volume is abnormal", 1)
		s.wantLogged(`reasons=UnpushedTooLong message="a commit is not pushed for longer than push.maxLatency, which is 5m0s"`, 1)

		v.Update(func(f *report.Figures) { f.Unpushed, f.LastPush = 0, time.Now() })
		s.wantLogged("the volume is well again", 1)
		s.wantScrape(series, series+" 0")
		s.wantPosts() // The pushes that failed have their Events.
	})
}

func TestNotUnpushedTooLong(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for name, figures := range map[string]report.Figures{
		"push.maxLatency is never":   {Unpushed: 1, UnpushedSince: long},
		"nothing is unpushed":        {UnpushedSince: long, MaxLatency: time.Minute},
		"since when is not known":    {Unpushed: 1, MaxLatency: time.Minute},
		"not for long":               {Unpushed: 1, UnpushedSince: time.Now(), MaxLatency: time.Minute},
		"a commit out of the future": {Unpushed: 1, UnpushedSince: time.Now().Add(time.Hour), MaxLatency: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			v := newStation(t).Volume(shop())
			v.Update(func(f *report.Figures) { *f = figures })
			wantVerdict(t, v, "")
		})
	}
}

func TestPendingPaths(t *testing.T) {
	s := newStation(t)
	v := s.Volume(shop())
	pending := func(armed bool, count int, path string) {
		v.Update(func(f *report.Figures) { f.Armed, f.Pending, f.PendingPath = armed, count, path })
	}
	const posted = "PersistentVolumeClaim/config Warning GitVolumePending: changes are not committed, because the volume is not armed; one is at "

	pending(false, 1, "a\nb")
	s.wantPosts(posted + `"a\nb"`)
	wantVerdict(t, v, "PathsPending")
	pending(false, 3, "another")
	s.wantPosts()
	pending(false, 0, "")
	wantVerdict(t, v, "")
	pending(false, 1, "c")
	s.wantPosts(posted + `"c"`)
	pending(true, 1, "c")
	wantVerdict(t, v, "")
	pending(true, 5, "c")
	s.wantPosts()
	// Paused while something waits.
	pending(false, 5, "c")
	s.wantPosts(posted + `"c"`)
	s.wantScrape("git_csi_pending_paths", `git_csi_pending_paths{claim="config",namespace="shop"} 5`)
}
