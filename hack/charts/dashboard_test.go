package charts

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql"
	corev1 "k8s.io/api/core/v1"
)

// dashboard is what the tests need to know of a Grafana dashboard.
type dashboard struct {
	UID, Title, Description string
	SchemaVersion           int
	Links                   []struct{ URL string }
	Templating              struct{ List []variable }
	Panels                  []panel
}

type variable struct {
	Name, Label, Type, AllValue string
	Datasource                  source
	Query                       json.RawMessage
	IncludeAll                  bool
}

type source struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               source
	GridPos                  place
	Targets                  []target
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
}

type target struct {
	RefID, Expr, Format, LegendFormat string
	Datasource                        source
}

// place is where a panel is, in units of which a dashboard is 24 wide.
type place struct{ X, Y, W, H int }

func (p place) overlaps(other place) bool {
	return p.X < other.X+other.W && other.X < p.X+p.W && p.Y < other.Y+other.H && other.Y < p.Y+p.H
}

// dashboard is the chart's, as it is installed.
func (c chart) dashboard(t *testing.T) (model dashboard, text string) {
	t.Helper()
	config := only[*corev1.ConfigMap](t, c.rendered(t, "docsURL: https://git.example.com/csi/\ndashboard: {enabled: true, labels: {grafana_dashboard: '0'}}"))
	if config.Labels["grafana_dashboard"] != "1" {
		t.Errorf("its labels are %v", config.Labels)
	}
	if len(config.Data) != 1 {
		t.Fatalf("it has %d dashboards", len(config.Data))
	}
	text = slices.Collect(maps.Values(config.Data))[0]
	if err := json.Unmarshal([]byte(text), &model); err != nil {
		t.Fatal(err)
	}
	return model, text
}

// instantly is what Grafana puts in the place of its variables while nobody chose any.
func (d dashboard) instantly(words string) string {
	words = strings.ReplaceAll(words, "$__rate_interval", "5m")
	for _, v := range d.Templating.List {
		if v.AllValue != "" {
			words = strings.ReplaceAll(words, "$"+v.Name, v.AllValue)
		}
	}
	return words
}

func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		model, _ := c.dashboard(t)
		known := c.metrics(t)
		for _, p := range model.Panels {
			for _, ask := range p.Targets {
				if err := checkExpression(model.instantly(ask.Expr), known); err != nil {
					t.Errorf("panel %q: %s: %v", p.Title, ask.Expr, err)
				}
			}
		}
		for _, v := range model.Templating.List {
			if v.Type != "query" {
				continue
			}
			found := regexp.MustCompile(`label_values\((.+), ([a-z]+)\)`).FindStringSubmatch(string(v.Query))
			if found == nil {
				t.Errorf("the variable %s asks %s", v.Name, v.Query)
				continue
			}
			asked := strings.ReplaceAll(model.instantly(found[1]), `\"`, `"`)
			if err := checkExpression("count by ("+found[2]+") ("+asked+")", known); err != nil {
				t.Errorf("the variable %s: %v", v.Name, err)
			}
		}
	})
}

// What Grafana takes without a complaint, and then shows wrongly or not at all.
func TestTheDashboardIsOneThatGrafanaShows(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		model, text := c.dashboard(t)
		if model.UID == "" || model.Title == "" || model.Description == "" || model.SchemaVersion < 36 {
			t.Errorf("it is %q, %q, %q, of version %d", model.UID, model.Title, model.Description, model.SchemaVersion)
		}
		wantPanels(t, model)
		wantVariables(t, model, text)
		c.wantLinks(t, text)
	})
}

func wantPanels(t *testing.T, model dashboard) {
	t.Helper()
	ours := source{"prometheus", "${datasource}"}
	ids := make(map[int]string)
	for i, p := range model.Panels {
		if other, twice := ids[p.ID]; twice || p.ID == 0 {
			t.Errorf("panel %q has the id %d, as %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		if at := p.GridPos; at.X < 0 || at.Y < 0 || at.W < 1 || at.H < 1 || at.X+at.W > 24 {
			t.Errorf("panel %q is at %+v", p.Title, at)
		}
		for _, other := range model.Panels[:i] {
			if p.GridPos.overlaps(other.GridPos) {
				t.Errorf("panel %q is over %q", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.Datasource != ours || len(p.Targets) == 0 {
			t.Errorf("panel %q says %q and asks %v for %d things", p.Title, p.Description, p.Datasource, len(p.Targets))
		}
		if p.Type != "table" && p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %q has no unit", p.Title)
		}
		asked := make(map[string]bool)
		for _, ask := range p.Targets {
			if ask.RefID == "" || asked[ask.RefID] || ask.Datasource != ours {
				t.Errorf("panel %q: a target is %q of %v", p.Title, ask.RefID, ask.Datasource)
			}
			asked[ask.RefID] = true
			if p.Type == "table" != (ask.Format == "table") || p.Type == "heatmap" != (ask.Format == "heatmap") {
				t.Errorf("panel %q is a %s and asks for the format %q", p.Title, p.Type, ask.Format)
			}
		}
	}
}

var variablePattern = regexp.MustCompile(`\$\{?([a-z_]+)`)

func wantVariables(t *testing.T, model dashboard, text string) {
	t.Helper()
	has := map[string]bool{"__rate_interval": true, "__data": true, "__all": true}
	used := make(map[string]bool)
	for _, found := range variablePattern.FindAllStringSubmatch(text, -1) {
		used[found[1]] = true
	}
	for _, v := range model.Templating.List {
		has[v.Name] = true
		if !used[v.Name] {
			t.Errorf("the variable %s is never used", v.Name)
		}
		if v.Label == "" || v.Type == "query" && (!v.IncludeAll || v.AllValue != ".*" || v.Datasource.UID != "${datasource}") {
			t.Errorf("the variable is %+v", v)
		}
	}
	for name := range used {
		if !has[name] {
			t.Errorf("$%s is no variable", name)
		}
	}
}

var (
	docsPattern = regexp.MustCompile(`\$\{docs\}/([^"#]+)(#[^"]+)?`)
	pagePattern = regexp.MustCompile(`\\"page\\", \\"([a-z]+)\\"`)
)

// wantLinks wants links to lead to pages of the repository, and sections that are there.
func (c chart) wantLinks(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(text, `"https://git.example.com/csi"`) {
		t.Error("docsURL is nowhere in it")
	}
	links := docsPattern.FindAllStringSubmatch(text, -1)
	if len(links) < 3 {
		t.Errorf("it has only the links %q", links)
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join("../..", link[1])); err != nil {
			t.Error(err)
		}
	}
	sections := readFile(t, c.docs, "runbooks.md")
	pages := pagePattern.FindAllStringSubmatch(text, -1)
	for _, p := range pages {
		if !regexp.MustCompile(`(?im)^## ` + p[1] + `$`).MatchString(sections) {
			t.Errorf("a fault leads to the section %s, which is not there", p[1])
		}
	}
	if len(pages) < 5 {
		t.Errorf("only %d faults lead somewhere", len(pages))
	}
}

// Over what the real drivers expose, every panel shows something, and what is wrong only
// where something is.
func TestTheDashboardOfRecordings(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		model, _ := c.dashboard(t)
		engine := newEngine()
		healthy := c.recordings(t, 180, "healthy")
		all := c.recordings(t, 180, slices.Sorted(maps.Keys(c.recorded))...)
		all.write(t, c.unrecorded)
		row := ""
		for _, p := range model.Panels {
			if p.Type == "row" {
				row = p.Title
			}
			for _, ask := range p.Targets {
				words := model.instantly(ask.Expr)
				found := all.last(t, engine, words)
				if len(found) == 0 {
					t.Errorf("panel %q shows nothing: %s", p.Title, words)
				}
				wantLegend(t, p, ask, found)
				if row != faultRow {
					continue
				}
				if !showsSomething(found) {
					t.Errorf("panel %q shows no fault of a faulty node: %s", p.Title, words)
				}
				if wrong := healthy.last(t, engine, words); showsSomething(wrong) {
					t.Errorf("panel %q shows of a healthy node %v: %s", p.Title, wrong, words)
				}
			}
		}
	})
}

// faultRow is the row of panels that show faults.
const faultRow = "What is wrong now"

func showsSomething(found promql.Matrix) bool {
	return slices.ContainsFunc(found, func(s promql.Series) bool { return s.Floats[len(s.Floats)-1].F > 0 })
}

var legendPattern = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)

// wantLegend wants the labels that a series is named by to be there.
func wantLegend(t *testing.T, p panel, ask target, found promql.Matrix) {
	t.Helper()
	for _, label := range legendPattern.FindAllStringSubmatch(ask.LegendFormat, -1) {
		if !slices.ContainsFunc(found, func(s promql.Series) bool { return s.Metric.Has(label[1]) }) {
			t.Errorf("panel %q: nothing that %s finds has the label %s", p.Title, ask.Expr, label[1])
		}
	}
}
