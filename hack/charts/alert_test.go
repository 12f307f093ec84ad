package charts

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// metric is what the driver's reference says of one.
type metric struct {
	kind   string
	labels []string
}

// metrics are the series that the driver's reference lists, by name; a histogram
// as the series it is scraped as.
func (c chart) metrics(t *testing.T) map[string]metric {
	t.Helper()
	found := make(map[string]metric)
	page := strings.ReplaceAll(readFile(t, c.docs, "reference", "metrics.md"), "| |", "|  |")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\| .+ \\|$").FindAllStringSubmatch(page, -1) {
		m := metric{row[2], regexp.MustCompile("[a-z_]+").FindAllString(row[3], -1)}
		if m.kind != "histogram" {
			found[row[1]] = m
			continue
		}
		found[row[1]+"_count"], found[row[1]+"_sum"] = m, m
		found[row[1]+"_bucket"] = metric{m.kind, append(slices.Clone(m.labels), "le")}
	}
	if len(found) < 10 {
		t.Fatalf("the metrics page lists %d series", len(found))
	}
	return found
}

// scraped are the labels that each series gets from the one who scrapes it.
var scraped = []string{"job", "instance", "namespace", "pod", "container", "node"}

// checkExpression wants words to be PromQL over series, and labels, that exist.
func checkExpression(words string, known map[string]metric) error {
	expression, err := parser.ParseExpr(words)
	if err != nil {
		return err
	}
	var errs []string
	selectors := 0
	has := slices.Clone(scraped) // The labels that there are in any part of it.
	var asked []string           // Those that it puts together by.
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			selectors++
			m, found := known[node.Name]
			if !found {
				errs = append(errs, fmt.Sprintf("%q is no metric of the driver", node.Name))
				return nil
			}
			has = append(has, m.labels...)
			for _, matcher := range node.LabelMatchers {
				if matcher.Name != labels.MetricName && !slices.Contains(append(m.labels, scraped...), matcher.Name) {
					errs = append(errs, fmt.Sprintf("%s has no label %q", node.Name, matcher.Name))
				}
			}
		case *parser.AggregateExpr:
			asked = append(asked, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				asked = append(asked, node.VectorMatching.MatchingLabels...)
				asked = append(asked, node.VectorMatching.Include...)
			}
		case *parser.Call:
			if node.Func.Name == "label_replace" {
				has = append(has, node.Args[1].(*parser.StringLiteral).Val)
			}
		}
		return nil
	})
	for _, label := range asked {
		if !slices.Contains(has, label) {
			errs = append(errs, fmt.Sprintf("no series of it has the label %q", label))
		}
	}
	if selectors == 0 {
		errs = append(errs, "it asks for no series")
	}
	if len(errs) > 0 {
		return fmt.Errorf("%s", strings.Join(errs, ", "))
	}
	return nil
}

func TestExpressionsThatAreWrong(t *testing.T) {
	known := called(t, "pernode").metrics(t)
	for words, want := range map[string]string{
		"increase(per_node_copies[1h]":                   "unclosed",
		"per_node_sweep_failures > 0":                    "no metric of the driver",
		`per_node_copy_bytes{handle="a"}`:                "no label",
		"vector(1)":                                      "no series",
		"sum by (handle) (per_node_copy_bytes)":          "no series of it has the label",
		"increase(per_node_copies)":                      "expected type range vector",
		`per_node_copy_bytes{volume="a",node="b"} > 2e9`: "",
	} {
		switch err := checkExpression(words, known); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", words, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: the error is %v, want %q in it", words, err, want)
		}
	}
}

// allAlerts renders every alert there is.
const allAlerts = "podMonitor: {enabled: true}\nprometheusRule: {enabled: true}"

func (c chart) alerts(t *testing.T, values string) []monitoringv1.Rule {
	t.Helper()
	groups := only[*monitoringv1.PrometheusRule](t, c.rendered(t, values)).Spec.Groups
	if len(groups) != 1 {
		t.Fatalf("there are %d groups", len(groups))
	}
	return groups[0].Rules
}

func names(rules []monitoringv1.Rule) []string {
	var all []string
	for _, rule := range rules {
		all = append(all, rule.Alert)
	}
	return all
}

func TestAlerts(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		known := c.metrics(t)
		known["up"] = metric{kind: "gauge"} // Prometheus's own
		for _, rule := range c.alerts(t, allAlerts) {
			if err := checkExpression(rule.Expr.String(), known); err != nil {
				t.Errorf("%s: %s: %v", rule.Alert, rule.Expr.String(), err)
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s: it has the annotations %q and the labels %q", rule.Alert, rule.Annotations, rule.Labels)
			}
		}
	})
}

// The list of those that can be left out is the schema's, and a person reads it
// in the README.
func TestEachAlertCanBeLeftOut(t *testing.T) {
	each(t, wantEachAlertToBeLeftOut)
}

func wantEachAlertToBeLeftOut(t *testing.T, c chart) {
	all := names(c.alerts(t, allAlerts))
	var known struct {
		Properties map[string]struct {
			Properties map[string]struct {
				Items struct{ Enum []string }
			}
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, c.dir(), "values.schema.json")), &known); err != nil {
		t.Fatal(err)
	}
	if listed := known.Properties["prometheusRule"].Properties["disabled"].Items.Enum; !slices.Equal(listed, all) {
		t.Errorf("the schema lists the alerts %q, there are %q", listed, all)
	}
	readme := readFile(t, c.dir(), "README.md")
	for _, name := range all {
		if !strings.Contains(readme, "| `"+name+"` |") {
			t.Errorf("the README does not list %s", name)
		}
		values := fmt.Sprintf("podMonitor: {enabled: true}\nprometheusRule: {enabled: true, disabled: [%s]}", name)
		if left := names(c.alerts(t, values)); slices.Contains(left, name) || len(left) != len(all)-1 {
			t.Errorf("without %s there are %q", name, left)
		}
	}
}

// What nobody scrapes through the chart's PodMonitor has no job of that name.
func TestThePluginsJob(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		down := func(rule monitoringv1.Rule) bool { return strings.HasSuffix(rule.Alert, "PluginDown") }
		if without := c.alerts(t, "prometheusRule: {enabled: true}"); slices.ContainsFunc(without, down) {
			t.Errorf("without the PodMonitor there are %q", names(without))
		}
		monitor := named[*monitoringv1.PodMonitor](t, c.rendered(t, allAlerts), c.plugin)
		rules := c.alerts(t, allAlerts)
		i := slices.IndexFunc(rules, down)
		if i < 0 {
			t.Fatalf("with the PodMonitor there are %q", names(rules))
		}
		// The operator's name for the job of a PodMonitor without a jobLabel.
		job := fmt.Sprintf(`job="%s/%s"`, monitor.Namespace, monitor.Name)
		if expression := rules[i].Expr.String(); monitor.Spec.JobLabel != "" || !strings.Contains(expression, job) {
			t.Errorf("the alert is %s, the job %s", expression, job)
		}
	})
}

func TestAlertLabels(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		for _, rule := range c.alerts(t, c.full(t)) {
			if rule.Labels["severity"] != "page" || rule.Labels["team"] != "storage" {
				t.Errorf("%s has the labels %v", rule.Alert, rule.Labels)
			}
		}
	})
}
