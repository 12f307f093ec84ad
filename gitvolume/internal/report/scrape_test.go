package report_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/csicommon/usage"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/report"
)

func TestTheSeriesOfAVolume(t *testing.T) {
	s := newStation(t)
	v := s.Volume(shop())
	const of = `{claim="config",namespace="shop"} `
	s.wantScrape("git_csi_last_push") // Not known yet.
	v.Update(func(f *report.Figures) {
		*f = report.Figures{Armed: true, Pending: 4, Unpushed: 2, LastPush: time.Unix(1000, 0)}
	})
	v.Raise(report.PushFailed, "refused")
	v.Raise(report.PushFailed, "refused")
	v.Raise(report.Diverged, "to main.h1")
	v.Raise(report.WatchDegraded, "no more watches")
	v.Skipped([]report.Skip{{Path: "a", Why: tooLarge}})
	for _, line := range []string{
		"git_csi_armed" + of + "1", "git_csi_pending_paths" + of + "4", "git_csi_unpushed_commits" + of + "2",
		"git_csi_last_push_timestamp_seconds" + of + "1000", "git_csi_push_failures_total" + of + "2",
		"git_csi_skipped_files" + of + "1", "git_csi_diverged" + of + "1", "git_csi_watch_degraded" + of + "1",
	} {
		name, _, _ := strings.Cut(line, "{")
		s.wantScrape(name+"{", line)
	}
	v.Clear(report.PushFailed, report.Diverged, report.WatchDegraded)
	s.wantScrape("git_csi_push_failures_total{", "git_csi_push_failures_total"+of+"2")
	s.wantScrape("git_csi_diverged{", "git_csi_diverged"+of+"0")
	s.wantScrape("git_csi_watch_degraded{", "git_csi_watch_degraded"+of+"0")
	v.Close()
	for _, line := range s.scrape("git_csi_") {
		if strings.Contains(line, "shop") {
			t.Errorf("of a closed volume there is %s", line)
		}
	}
}

func TestKinds(t *testing.T) {
	s := newStation(t)
	want := func(inline, readonly, writeable int) {
		t.Helper()
		s.wantScrape("git_csi_volumes",
			fmt.Sprintf(`git_csi_volumes{kind="inline"} %d`, inline),
			fmt.Sprintf(`git_csi_volumes{kind="readonly"} %d`, readonly),
			fmt.Sprintf(`git_csi_volumes{kind="writeable"} %d`, writeable))
	}
	want(0, 0, 0)
	s.Volume(report.Subject{Kind: attributes.KindInline, Handle: "csi-1", Volume: "code", Namespace: "shop"})
	claim := shop()
	claim.Kind = attributes.KindReadOnlyClaim
	v := s.Volume(claim)
	want(1, 1, 0)
	v.Close()
	s.Volume(shop())
	want(1, 0, 1)
	s.wantScrape("git_csi_volume_abnormal",
		`git_csi_volume_abnormal{claim="",namespace="shop",volume="code"} 0`,
		`git_csi_volume_abnormal{claim="config",namespace="shop",volume="pv-1"} 0`)
	s.wantScrape("git_csi_armed", `git_csi_armed{claim="config",namespace="shop"} 0`)
}

// Replicas on one node with an inline volume have the same labels, and so has a claim
// that was made again.
func TestVolumesWithTheSameLabels(t *testing.T) {
	s := newStation(t)
	replica := report.Subject{Kind: attributes.KindInline, Volume: "code", Namespace: "shop"}
	var replicas []*report.Volume
	for n := range 3 {
		replica.Handle = fmt.Sprint("csi-", n)
		replicas = append(replicas, s.Volume(replica))
	}
	const series = `git_csi_volume_abnormal{claim="",namespace="shop",volume="code"} `
	s.wantScrape("git_csi_volume_abnormal", series+"0")
	replicas[1].Raise(report.FetchFailed, "x")
	s.wantScrape("git_csi_volume_abnormal", series+"1")
	replicas[1].Close()
	s.wantScrape("git_csi_volume_abnormal", series+"0")

	before, after := s.Volume(shop()), s.Volume(shop())
	before.Update(func(f *report.Figures) { f.Unpushed, f.LastPush = 3, time.Unix(2000, 0) })
	after.Update(func(f *report.Figures) { f.Armed, f.Unpushed, f.LastPush = true, 1, time.Unix(1000, 0) })
	const of = `{claim="config",namespace="shop"} `
	s.wantScrape("git_csi_armed", "git_csi_armed"+of+"1")
	s.wantScrape("git_csi_unpushed_commits", "git_csi_unpushed_commits"+of+"4")
	s.wantScrape("git_csi_last_push", "git_csi_last_push_timestamp_seconds"+of+"2000")
}

// A directory that somebody watches can have any name.
func TestANameThatIsNoUTF8(t *testing.T) {
	s := newStation(t)
	s.Volume(report.Subject{Kind: attributes.KindInline, Volume: "/srv/caf\xe9"})
	s.wantScrape("git_csi_volume_abnormal", `git_csi_volume_abnormal{claim="",namespace="",volume="/srv/caf�"} 0`)
}

func TestTwoThousandVolumes(t *testing.T) {
	const many = 2500 // The SDK's own limit is 2,000.
	s := newStation(t)
	var volumes []*report.Volume
	for n := range many {
		subject := shop()
		subject.Handle, subject.Volume, subject.Claim = fmt.Sprint("h", n), fmt.Sprint("pv-", n), fmt.Sprint("c", n)
		volumes = append(volumes, s.Volume(subject))
	}
	want := func(count int) {
		t.Helper()
		text := s.exposition()
		for _, name := range []string{"git_csi_armed", "git_csi_push_failures_total", "git_csi_volume_abnormal"} {
			if got := strings.Count(text, "\n"+name+"{"); got != count {
				t.Errorf("%d series of %s, want %d", got, name, count)
			}
		}
	}
	want(many)
	for _, v := range volumes[1:] {
		v.Close()
	}
	want(1)
}

// What is not known is absent, and what was measured or asked is there without the other.
func TestTheStore(t *testing.T) {
	var isMeasured, isAsked bool
	s := newStation(t, func(settings *report.Settings) {
		settings.StoreBytes = func() (int64, bool) { return 4096, isMeasured }
		settings.StoreSpace = func(context.Context) (usage.Space, bool) {
			return usage.Space{Bytes: 10_000, AvailableBytes: 5000, Inodes: 10, AvailableInodes: 9}, isAsked
		}
		settings.RefusesWriteable = true
	})
	const (
		available, size = "git_csi_store_available_bytes 5000", "git_csi_store_bytes 4096"
		capacity        = "git_csi_store_capacity_bytes 10000"
		refuses         = "git_csi_store_refuses_writeable 1"
	)
	s.wantScrape("git_csi_store_", refuses)
	isMeasured = true
	s.wantScrape("git_csi_store_", size, refuses)
	isAsked = true
	s.wantScrape("git_csi_store_", available, size, capacity, refuses)
	isMeasured = false
	s.wantScrape("git_csi_store_", available, capacity, refuses)
}

func TestWork(t *testing.T) {
	s := newStation(t)
	s.wantScrape("git_csi_demanded_pulls_total", "git_csi_demanded_pulls_total 0")
	s.wantScrape("csi_events_dropped_total", "csi_events_dropped_total 0")
	s.PullDemanded()
	s.EventsDropped(3)
	s.wantScrape("git_csi_demanded_pulls_total", "git_csi_demanded_pulls_total 1")
	s.wantScrape("csi_events_dropped_total", "csi_events_dropped_total 3")

	s.Committed(20 * time.Millisecond)
	s.Rebased(30 * time.Millisecond)
	s.Rebased(30 * time.Millisecond)
	s.Pushed(2 * time.Second)
	s.Fetched("git.example.com/a", time.Second, nil)
	s.wantScrape("git_csi_fetch_failures_total", `git_csi_fetch_failures_total{repo="git.example.com/a"} 0`)
	s.Fetched("git.example.com/a", time.Second, errors.New("unreachable"))
	s.wantScrape("git_csi_fetch_failures_total", `git_csi_fetch_failures_total{repo="git.example.com/a"} 1`)
	s.wantScrape("git_csi_fetch_duration_seconds_count", `git_csi_fetch_duration_seconds_count{repo="git.example.com/a"} 2`)
	s.LookFailed("git.example.com/a")
	s.wantScrape("git_csi_fetch_failures_total", `git_csi_fetch_failures_total{repo="git.example.com/a"} 2`)
	s.wantScrape("git_csi_fetch_duration_seconds_count", `git_csi_fetch_duration_seconds_count{repo="git.example.com/a"} 2`)
	s.wantScrape("git_csi_commit_duration_seconds_sum", "git_csi_commit_duration_seconds_sum 0.02")
	s.wantScrape("git_csi_rebase_duration_seconds_count", "git_csi_rebase_duration_seconds_count 2")
	s.wantScrape("git_csi_push_duration_seconds_sum", "git_csi_push_duration_seconds_sum 2")
}

// Any pod's author names repositories, and what is no UTF-8 would take all figures away.
func TestHostileRepositories(t *testing.T) {
	s := newStation(t)
	s.Fetched("host/caf\xe9", time.Second, nil)
	for n := range 1000 {
		s.Fetched(fmt.Sprint("host/", n), time.Second, nil)
	}
	s.Fetched("host/1", time.Second, nil)
	text := s.exposition()
	if got := strings.Count(text, "\ngit_csi_fetch_failures_total{"); got != 501 {
		t.Errorf("%d series, want 501", got)
	}
	for _, line := range []string{
		`git_csi_fetch_failures_total{repo="host/caf�"} 0`,
		`git_csi_fetch_duration_seconds_count{repo="host/1"} 2`,
		`git_csi_fetch_duration_seconds_count{repo="other"} 501`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%s is not scraped", line)
		}
	}
}

// series is what one row of the metrics page, or one family of a scrape, says.
type series struct{ kind, labels string }

func TestTheMetricsPageListsEverySeries(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	ofTheNode, _, found := strings.Cut(string(page), "\n## Of the controller\n")
	if !found {
		t.Fatal("the page does not part what the controller exposes, of which there is no report")
	}
	documented := map[string]series{}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(strings.ReplaceAll(ofTheNode, "| |", "|  |"), -1) {
		labels := regexp.MustCompile("[a-z_]+").FindAllString(match[3], -1)
		slices.Sort(labels)
		documented[match[1]] = series{match[2], strings.Join(labels, " ")}
	}
	delete(documented, "csi_plugin_operations_seconds") // That is made by what serves CSI.

	s := newStation(t, func(settings *report.Settings) {
		settings.StoreBytes = func() (int64, bool) { return 1, true }
		settings.StoreSpace = func(context.Context) (usage.Space, bool) { return usage.Space{Bytes: 2, AvailableBytes: 1}, true }
	})
	s.Volume(shop()).Update(func(f *report.Figures) { f.LastPush = time.Now() })
	s.Committed(time.Second)
	s.Rebased(time.Second)
	s.Pushed(time.Second)
	s.Fetched("host/path", time.Second, nil)
	if exposed := families(s.exposition()); !maps.Equal(exposed, documented) {
		t.Errorf("exposed\n%v\nthe page says\n%v", exposed, documented)
	}
}

// families reads a scrape.
func families(text string) map[string]series {
	found := map[string]series{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
		names := map[string]bool{}
		lines := regexp.MustCompile(`(?m)^` + match[1] + `(?:_bucket|_sum|_count)?\{(.*)\} `)
		for _, line := range lines.FindAllStringSubmatch(text, -1) {
			for _, pair := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(line[1], -1) {
				names[pair[1]] = true
			}
		}
		delete(names, "le")
		found[match[1]] = series{match[2], strings.Join(slices.Sorted(maps.Keys(names)), " ")}
	}
	return found
}
