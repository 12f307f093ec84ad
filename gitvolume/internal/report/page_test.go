package report_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/report"
)

// reasons are those of all Events the package makes, as its source has them.
func reasons(t testing.TB) []string {
	t.Helper()
	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"(GitVolume\w+)"`).FindAllStringSubmatch(string(source), -1)
	var all []string
	for _, match := range found {
		all = append(all, match[1])
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) < 16 {
		t.Fatalf("only %q", all)
	}
	return all
}

// The page that a user comes to from an Event has each Event, and each reason of health,
// and no other.
func TestTheEventsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	events, verdicts, found := strings.Cut(string(page), "## What makes a volume abnormal")
	if !found {
		t.Fatal("the page has no verdicts")
	}
	first := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")
	column := func(text string) []string {
		var names []string
		for _, match := range first.FindAllStringSubmatch(text, -1) {
			names = append(names, match[1])
		}
		slices.Sort(names)
		return names
	}
	if got, want := column(events), reasons(t); !slices.Equal(got, want) {
		t.Errorf("the page has the Events\n%q\nthe package\n%q", got, want)
	}

	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for _, fault := range constants(t, string(source), "Fault") {
		if fault != string(report.WatchDegraded) { // It makes no volume abnormal.
			faults = append(faults, fault)
		}
	}
	slices.Sort(faults)
	if got := column(verdicts); !slices.Equal(got, faults) {
		t.Errorf("the page has the reasons\n%q\nthe package\n%q", got, faults)
	}
	// Each row names the Event that tells of the reason.
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| .* \\| (?:`(\\w*)`)? ?\\|$").FindAllStringSubmatch(verdicts, -1) {
		s := newStation(t)
		s.Volume(shop()).Raise(report.Fault(match[1]), "m")
		var want []string
		if match[2] != "" {
			want = append(want, "PersistentVolumeClaim/config Warning "+match[2]+": m")
		}
		s.wantPosts(want...)
	}
}
