package charts

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// firing are the alerts that fire at the end, as "Name label=value", with the labels that
// tell them apart.
func (s *scrapes) firing(t *testing.T, rules []monitoringv1.Rule) []string {
	t.Helper()
	engine := newEngine()
	var found []string
	for _, rule := range rules {
		wait := time.Duration(0)
		if rule.For != nil {
			d, err := model.ParseDuration(string(*rule.For))
			if err != nil {
				t.Fatal(err)
			}
			wait = time.Duration(d)
		}
		// Prometheus fires what was there at each evaluation for so long.
		rounds := int(wait/minute) + 1
		for _, series := range s.matrix(t, engine, rule.Expr.String(), s.end.Add(-wait), s.end) {
			if len(series.Floats) != rounds {
				continue
			}
			found = append(found, titled(rule, series))
			wantWords(t, rule, series)
		}
	}
	slices.Sort(found)
	return found
}

// titled names an alert by what it is about.
func titled(rule monitoringv1.Rule, series promql.Series) string {
	name := rule.Alert
	for _, label := range []string{"claim", "volume", "repo", "reason", "grpc_status_code", "node", "component"} {
		if value := series.Metric.Get(label); value != "" {
			return name + " " + label + "=" + value
		}
	}
	return name
}

// wantWords wants the annotations to be whole sentences once they are expanded.
func wantWords(t *testing.T, rule monitoringv1.Rule, series promql.Series) {
	t.Helper()
	last := series.Floats[len(series.Floats)-1]
	data := template.AlertTemplateData(series.Metric.Map(), nil, "", promql.Sample{T: last.T, F: last.F, Metric: series.Metric})
	for name, text := range rule.Annotations {
		const prefix = "{{$labels := .Labels}}{{$value := .Value}}"
		said, err := template.NewTemplateExpander(t.Context(), prefix+text, rule.Alert, data, model.Time(last.T), nil, &url.URL{}, nil).Expand()
		if err != nil || strings.Contains(said, "no value") || strings.Contains(said, "  ") || strings.Contains(said, "/ ") || strings.Contains(said, "{{") {
			t.Errorf("%s: %s is %q, %v", rule.Alert, name, said, err)
		}
	}
}

// onNode are the labels that a chart's PodMonitor gives a plugin.
func (c chart) onNode(node string) map[string]string {
	return map[string]string{
		"job": c.namespace + "/" + c.plugin, "instance": node + ":9200", "node": node,
		"namespace": c.namespace, "pod": c.plugin + "-" + node, "container": "plugin",
	}
}

// recordings has each recording scraped from a node of its name, or from the controller.
func (c chart) recordings(t *testing.T, minutes int, names ...string) *scrapes {
	t.Helper()
	s := &scrapes{}
	for _, name := range names {
		target := c.onNode(name)
		if name == "controller" {
			target = map[string]string{"job": "gitvolume/gitvolume-controller", "instance": "controller:9200", "namespace": c.namespace}
		}
		s.replayed(t, readFile(t, c.recorded[name]), minutes, name == "healthy", target)
		s.add(upOf(target), slices.Repeat([]float64{1}, minutes+1))
	}
	return s
}

// The alerts over what the real drivers expose: none of a healthy node, and of a faulty one
// each that it should be, once.
func TestAlertsOfRecordings(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		rules := c.alerts(t, allAlerts)
		for names, want := range c.firing {
			got := c.recordings(t, 240, strings.Fields(names)...).firing(t, rules)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("of %s fire\n%s\nwant\n%s", names, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// Each alert has to have fired in some test, or nothing is known of it.
func TestAlertsOfScenarios(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		rules := c.alerts(t, allAlerts)
		fired := make(map[string]bool)
		for _, all := range c.firing {
			for _, one := range all {
				fired[strings.Fields(one)[0]] = true
			}
		}
		for _, s := range c.scenarios {
			got := written(t, s.series).firing(t, rules)
			got = slices.DeleteFunc(got, func(one string) bool { return strings.Contains(one, "Absent") && !slices.Contains(s.firing, one) })
			if !slices.Equal(got, s.firing) {
				t.Errorf("%s: %q fire, want %q", s.name, got, s.firing)
			}
			for _, one := range got {
				fired[strings.Fields(one)[0]] = true
			}
		}
		for _, rule := range rules {
			if !fired[rule.Alert] {
				t.Errorf("no test has %s fire", rule.Alert)
			}
		}
	})
}

// Who is called at night finds what to do: each alert has a section of the runbooks, with
// what it means, what it does to people, how to find the cause, and the cure.
func TestRunbooks(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		page := readFile(t, c.docs, "runbooks.md")
		sections := make(map[string]string)
		for _, section := range strings.Split(page, "\n## ")[1:] {
			title, text, _ := strings.Cut(section, "\n")
			sections[title] = text
		}
		for _, rule := range c.alerts(t, allAlerts+"\ndocsURL: https://git.example.com/csi/blob/main/") {
			text, found := sections[rule.Alert]
			if !found {
				t.Errorf("%s has no section", rule.Alert)
				continue
			}
			delete(sections, rule.Alert)
			for _, part := range []string{"**Meaning.**", "**Effect.**", "**Cause.**", "**Cure.**"} {
				if !strings.Contains(text, part) {
					t.Errorf("the section of %s has no %q", rule.Alert, part)
				}
			}
			if !strings.Contains(text, "```sh\n") && !strings.Contains(text, "```promql\n") {
				t.Errorf("the section of %s has no command", rule.Alert)
			}
			want := fmt.Sprintf("https://git.example.com/csi/blob/main/%s/docs/runbooks.md#%s", c.name, strings.ToLower(rule.Alert))
			if got := rule.Annotations["runbook_url"]; got != want {
				t.Errorf("the runbook of %s is %s, want %s", rule.Alert, got, want)
			}
		}
		for title := range sections {
			t.Errorf("the section %q has no alert", title)
		}
	})
}
