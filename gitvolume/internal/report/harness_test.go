package report_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"liken.sh/csicommon/csitest/logtest"
	"liken.sh/csicommon/event"
	"liken.sh/csicommon/telemetry"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/report"
)

// posts keeps the Events that were posted, each as "Kind/name Type Reason: message".
type posts struct {
	mu   sync.Mutex
	list []string
}

func (p *posts) Post(about event.Object, kind event.Type, reason, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, fmt.Sprintf("%s/%s %s %s: %s", about.Kind, about.Name, kind, reason, message))
}

// take gives what was posted since it was last called.
func (p *posts) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.list
	p.list = nil
	return taken
}

// station is a Reports whose every output can be looked at.
type station struct {
	*report.Reports
	t         testing.TB
	posts     posts
	log       logtest.Log
	telemetry *telemetry.Telemetry
}

func newStation(t testing.TB, change ...func(*report.Settings)) *station {
	t.Helper()
	s := &station{t: t}
	var err error
	s.telemetry, err = telemetry.New(t.Context(), telemetry.Config{Service: "test", Node: "n", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	settings := report.Settings{Recorder: &s.posts, Log: s.log.Logger(), Meter: s.telemetry.Meter()}
	for _, c := range change {
		c(&settings)
	}
	if s.Reports, err = report.New(settings); err != nil {
		t.Fatal(err)
	}
	return s
}

// shop is a writeable volume whose claim is known and that no pod uses.
func shop() report.Subject {
	return report.Subject{
		Kind: attributes.KindWriteable, Handle: "h1", Volume: "pv-1", Namespace: "shop", Claim: "config", ClaimUID: "c-1",
	}
}

func web() report.Pod { return report.Pod{Namespace: "shop", Name: "web", UID: "p-1"} }

func (s *station) wantPosts(want ...string) {
	s.t.Helper()
	if got := s.posts.take(); !slices.Equal(got, want) {
		s.t.Errorf("posted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// logged counts the lines of the log that hold the text.
func (s *station) logged(text string) int { return strings.Count(s.log.String(), text) }

func (s *station) wantLogged(text string, times int) {
	s.t.Helper()
	if got := s.logged(text); got != times {
		s.t.Errorf("%q is %d times in the log, want %d:\n%s", text, got, times, s.log.String())
	}
}

// scrape gives the lines of a scrape that begin so, without comments.
func (s *station) scrape(prefix string) []string {
	s.t.Helper()
	var lines []string
	for line := range strings.Lines(s.exposition()) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func (s *station) exposition() string {
	s.t.Helper()
	answer := httptest.NewRecorder()
	s.telemetry.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		s.t.Fatal(answer.Body.String())
	}
	return answer.Body.String()
}

func (s *station) wantScrape(prefix string, want ...string) {
	s.t.Helper()
	if got := s.scrape(prefix); !slices.Equal(got, want) {
		s.t.Errorf("scraped\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// verdict is the volume's reasons, sorted as they are given; one that is Inaccessible
// starts with "!".
func verdict(v *report.Volume) string {
	var names []string
	for _, reason := range v.Abnormal() {
		name := reason.Reason
		if reason.Severity == report.Inaccessible {
			name = "!" + name
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func wantVerdict(t testing.TB, v *report.Volume, want string) {
	t.Helper()
	if got := verdict(v); got != want {
		t.Errorf("the verdict is %q, want %q", got, want)
	}
}

// constants are the values that a file of the package gives its constants of a type.
func constants(t testing.TB, text, kind string) []string {
	t.Helper()
	var values []string
	for _, match := range regexp.MustCompile(`(?m)^\t\w+ +`+kind+` += "(\w+)"$`).FindAllStringSubmatch(text, -1) {
		values = append(values, match[1])
	}
	if len(values) == 0 {
		t.Fatalf("no constant of type %s", kind)
	}
	return values
}
