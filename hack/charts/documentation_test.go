package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// flatten lists the values below prefix by their path, such as image.tag, as one
// line of JSON each. A map without fields, and a list, is one value; so is one of
// the maps of whole, which a person sets as a whole.
func flatten(prefix string, value any, whole []string, to map[string]string) {
	if fields, is := value.(map[string]any); is && (prefix == "" || len(fields) > 0 && !slices.Contains(whole, prefix)) {
		for name, field := range fields {
			flatten(strings.TrimPrefix(prefix+"."+name, "."), field, whole, to)
		}
		return
	}
	line, err := json.Marshal(value)
	if err != nil {
		panic(err) // it came out of YAML
	}
	to[prefix] = string(line)
}

// wholes are the values that are an object of Kubernetes's own.
var wholes = []string{
	"resources", "nodeSelector", "updateStrategy",
	"controller.resources", "controller.nodeSelector", "controller.resizer.resources", "controller.provisioner.resources",
	"webhook.resources", "webhook.nodeSelector",
}

// defaults are those of values.yaml, by path.
func (c chart) defaults(t *testing.T) map[string]string {
	t.Helper()
	var values any
	if err := yaml.UnmarshalStrict([]byte(readFile(t, c.dir(), "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	flatten("", values, wholes, found)
	if len(found) < 30 {
		t.Fatalf("only %d values were found", len(found))
	}
	return found
}

var rowPattern = regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| `([^`]+)` \\| (.+) \\|$")

func TestTheReadmeListsEveryValueWithItsDefault(t *testing.T) {
	each(t, wantEveryValueInTheReadme)
}

func wantEveryValueInTheReadme(t *testing.T, c chart) {
	documented := make(map[string]string)
	for _, row := range rowPattern.FindAllStringSubmatch(readFile(t, c.dir(), "README.md"), -1) {
		if _, twice := documented[row[1]]; twice {
			t.Errorf("%s has two rows", row[1])
		}
		documented[row[1]] = row[2]
	}
	for path, value := range c.defaults(t) {
		says, found := documented[path]
		switch {
		case !found:
			t.Errorf("%s has no row", path)
		case says != value:
			t.Errorf("%s is %s by default, the README says %s", path, value, says)
		}
		delete(documented, path)
	}
	for path := range documented {
		t.Errorf("%s has a row and is no value", path)
	}
}

// properties lists the paths that the schema knows.
func properties(prefix string, s schema, to map[string]bool) {
	if len(s.Properties) == 0 || slices.Contains(wholes, prefix) || strings.HasSuffix(prefix, "affinity") {
		to[prefix] = true
		return
	}
	for name, below := range s.Properties {
		properties(strings.TrimPrefix(prefix+"."+name, "."), below, to)
	}
}

func TestTheSchemaListsEveryValue(t *testing.T) {
	each(t, wantEveryValueInTheSchema)
}

func wantEveryValueInTheSchema(t *testing.T, c chart) {
	var root schema
	if err := json.Unmarshal([]byte(readFile(t, c.dir(), "values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	properties("", root, known)
	for path := range c.defaults(t) {
		if !known[path] {
			t.Errorf("the schema does not know %s", path)
		}
		delete(known, path)
	}
	delete(known, "global") // Helm's own
	if len(known) > 0 {
		t.Errorf("the schema knows %v, which values.yaml has not", slices.Sorted(maps.Keys(known)))
	}
}

// A value that the full file leaves out is one that no golden file shows.
func TestTheFullFileSetsEveryValue(t *testing.T) {
	each(t, wantEveryValueInTheFullFile)
}

func wantEveryValueInTheFullFile(t *testing.T, c chart) {
	var values any
	if err := yaml.UnmarshalStrict([]byte(c.full(t)), &values); err != nil {
		t.Fatal(err)
	}
	set := make(map[string]string)
	flatten("", values, append(wholes, "affinity", "podAnnotations", "podLabels", "commonLabels", "serviceAccount.annotations",
		"controller.affinity", "controller.podAnnotations", "controller.podLabels", "controller.serviceAccount.annotations",
		"webhook.affinity", "webhook.podAnnotations", "webhook.podLabels", "webhook.serviceAccount.annotations",
		"webhook.service.annotations", "webhook.ingress.annotations", "webhook.httpRoute.annotations",
		"podMonitor.labels", "prometheusRule.labels", "prometheusRule.alertLabels", "dashboard.labels", "dashboard.annotations"), set)
	for path, value := range c.defaults(t) {
		if set[path] == "" || set[path] == value {
			t.Errorf("%s is %s, by default %s", path, set[path], value)
		}
	}
}

func TestArgumentsAreFlags(t *testing.T) {
	each(t, wantArgumentsToBeFlags)
}

func wantArgumentsToBeFlags(t *testing.T, c chart) {
	flags := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)[^`|]*` \\|").FindAllStringSubmatch(readFile(t, c.docs, c.flags), -1) {
		flags[row[1]] = true
	}
	if len(flags) == 0 {
		t.Fatal("the flags page has no flags")
	}
	given := make(map[string]bool)
	for _, values := range []string{"", c.full(t)} {
		once := make(map[string]bool)
		for _, argument := range c.arguments(t, values) {
			name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
			if !strings.HasPrefix(argument, "--") || !flags[name] {
				t.Errorf("%q is no flag of the driver", argument)
			}
			if repeatable := strings.HasPrefix(name, "allow-") && value != ""; once[name] && !repeatable {
				t.Errorf("--%s is given twice", name)
			}
			once[name], given[name] = true, true
		}
	}
	for _, name := range c.unset {
		given[name] = true
	}
	for name := range flags {
		if !given[name] {
			t.Errorf("--%s cannot be set by a value", name)
		}
	}
}

// arguments are the flags that the plugin is started with.
func (c chart) arguments(t *testing.T, values string) []string {
	t.Helper()
	all := only[*appsv1.DaemonSet](t, c.rendered(t, values)).Spec.Template.Spec.Containers[0].Args
	flags := all[len(c.command):]
	if words := all[:len(c.command)]; !slices.Equal(words, c.command) {
		t.Errorf("the plugin is started as %q, want %q", words, c.command)
	}
	return flags
}

// One flag must not be set by a value and by extraArgs: the later wins, and the
// mounts follow the value.
func TestExtraArgsRefusesEachFlagThatIsAValue(t *testing.T) {
	each(t, wantExtraArgsToRefuseThem)
}

func wantExtraArgsToRefuseThem(t *testing.T, c chart) {
	checked := 0
	for _, argument := range c.arguments(t, c.full(t)) {
		name, _, _ := strings.Cut(argument, "=")
		if name == "--kubeconfig" { // the extra one
			continue
		}
		checked++
		if _, err := c.template(t, fmt.Sprintf("extraArgs: [%q]", argument)); err == nil {
			t.Errorf("extraArgs takes %s, which is set already", argument)
		}
	}
	if checked < 10 {
		t.Errorf("only %d arguments were checked", checked)
	}
}
