package charts

import (
	"encoding/json"
	"strings"
	"testing"
)

// refused are values, and words of the error.
type refused map[string]struct {
	values string
	words  []string
}

// refusedByAll are values that every chart has.
func refusedByAll() refused {
	return refused{
		"a typing error":                   {"kubletDir: /var/lib/kubelet", []string{"kubletDir"}},
		"a typing error below":             {"image: {tags: v1}", []string{"/image", "tags"}},
		"a relative kubelet directory":     {"kubeletDir: var/lib/kubelet", []string{"/kubeletDir", "pattern"}},
		"a slash at the end":               {"kubeletDir: /var/lib/kubelet/", []string{"/kubeletDir", "pattern"}},
		"dots in the path":                 {"store: /var/lib/../lib/store", []string{"/store", "not"}},
		"the root directory":               {"store: /", []string{"/store", "pattern"}},
		"no kubelet directory":             {"kubeletDir: ''", []string{"/kubeletDir"}},
		"a boolean in quotes":              {"adoptStore: 'true'", []string{"/adoptStore", "want boolean"}},
		"an unknown log level":             {"logLevel: trace", []string{"/logLevel", "must be one of"}},
		"an unknown log format":            {"logFormat: yaml", []string{"/logFormat", "must be one of"}},
		"a port in quotes":                 {"httpPort: '9808'", []string{"/httpPort", "want integer"}},
		"a port that is none":              {"httpPort: 65536", []string{"/httpPort", "maximum"}},
		"an address with a space":          {"otlpEndpoint: 'a b'", []string{"/otlpEndpoint", "pattern"}},
		"a flag that is a value":           {"extraArgs: ['--kubelet-dir=/elsewhere']", []string{"extraArgs: --kubelet-dir is set by another value"}},
		"an argument that is no flag":      {"extraArgs: [verbose]", []string{"/extraArgs/0", "pattern"}},
		"another NODE_NAME":                {"extraEnv: [{name: NODE_NAME, value: a}]", []string{"/extraEnv/0/name", "not"}},
		"a number as environment":          {"extraEnv: [{name: A, value: 1}]", []string{"/extraEnv/0/value", "want string"}},
		"a digest that is a tag":           {"image: {digest: v1}", []string{"/image/digest", "pattern"}},
		"a tag that is a number":           {"image: {tag: 1.2}", []string{"/image/tag", "want string"}},
		"a registry with a path":           {"image: {registry: example.com/team}", []string{"/image/registry", "pattern"}},
		"an unknown pull policy":           {"image: {pullPolicy: Sometimes}", []string{"/image/pullPolicy", "must be one of"}},
		"pull secrets by name alone":       {"imagePullSecrets: [login]", []string{"/imagePullSecrets/0", "want object"}},
		"a limit beside requests":          {"resources: {memory: 1Gi}", []string{"/resources", "memory"}},
		"a quantity that is none":          {"resources: {limits: {memory: 1 GB}}", []string{"/resources/limits/memory"}},
		"a boolean label":                  {"nodeSelector: {fast: true}", []string{"/nodeSelector/fast", "want string"}},
		"a toleration's unknown effect":    {"tolerations: [{effect: NoRun}]", []string{"/tolerations/0/effect", "must be one of"}},
		"one toleration":                   {"tolerations: {operator: Exists}", []string{"/tolerations", "want array"}},
		"a second process on one store":    {"updateStrategy: {rollingUpdate: {maxSurge: 1}}", []string{"/updateStrategy/rollingUpdate", "maxSurge"}},
		"an update of no node at a time":   {"updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", []string{"/updateStrategy/rollingUpdate/maxUnavailable"}},
		"no time to end":                   {"terminationGracePeriodSeconds: 0", []string{"/terminationGracePeriodSeconds", "minimum"}},
		"a label the selector uses":        {"podLabels: {app.kubernetes.io/name: a}", []string{"/podLabels/app.kubernetes.io~1name"}},
		"a common label the selector uses": {"commonLabels: {app.kubernetes.io/instance: a}", []string{"/commonLabels/app.kubernetes.io~1instance"}},
		"a label with a space":             {"commonLabels: {team: 'a b'}", []string{"/commonLabels/team", "pattern"}},
		"a name in upper case":             {"fullnameOverride: PerNode", []string{"/fullnameOverride", "pattern"}},
		"a name too long for a label":      {"fullnameOverride: " + strings.Repeat("n", 54), []string{"/fullnameOverride", "maxLength"}},
		"a Go time for Prometheus":         {"podMonitor: {interval: 0.5m}", []string{"/podMonitor/interval", "pattern"}},
		"the store below the kubelet's":    {"store: /var/lib/kubelet/per-node", []string{"neither may be in the other", "/var/lib/kubelet/per-node"}},
		"the kubelet's below the store":    {"store: /var/lib", []string{"neither may be in the other"}},
		"the store is the kubelet's":       {"store: /var/lib/kubelet", []string{"neither may be in the other"}},
	}
}

func refusedByPernode() refused {
	return refused{
		"a path too long for a socket":        {"kubeletDir: /" + strings.Repeat("k", 63), []string{"/kubeletDir", "maxLength"}},
		"a number as time":                    {"sweepEvery: 600", []string{"/sweepEvery", "want string"}},
		"a time without a unit":               {"sweepEvery: '600'", []string{"/sweepEvery", "pattern"}},
		"no time":                             {"sweepEvery: 0s", []string{"/sweepEvery", "not"}},
		"no class":                            {"storageClass: {name: ''}", []string{"/storageClass/name", "minLength"}},
		"an alert that is none":               {"prometheusRule: {disabled: [PerNodeFull]}", []string{"/prometheusRule/disabled/0", "must be one of"}},
		"percent for a share":                 {"prometheusRule: {storeAvailableBelow: 10}", []string{"/prometheusRule/storeAvailableBelow", "maximum"}},
		"a store whose parent is the root":    {"store: /data\nrequireMount: true", []string{"requireMount", "/data/per-node"}},
		"a store whose parent has kubelets's": {"store: /var/lib/per-node\nrequireMount: true", []string{"requireMount", "kubeletDir", "/var/lib/per-node/per-node"}},
	}
}

func refusedByGitvolume() refused {
	return refused{
		"a path too long for a socket":        {"kubeletDir: /" + strings.Repeat("k", 68), []string{"/kubeletDir", "maxLength"}},
		"a number as time":                    {"scanEvery: 600", []string{"/scanEvery", "want string"}},
		"a time without a unit":               {"fetchTimeout: '600'", []string{"/fetchTimeout", "pattern"}},
		"no time":                             {"scanEvery: 0h0m", []string{"/scanEvery", "not"}},
		"no interval":                         {"demandMinInterval: 0s", []string{"/demandMinInterval", "not"}},
		"a part of the disk in words":         {"minFree: 5 percent", []string{"/minFree", "pattern"}},
		"a part of the disk as a number":      {"minFree: 0", []string{"/minFree", "want string"}},
		"one URL":                             {"allowURLs: git.example.com", []string{"/allowURLs", "want array"}},
		"a URL with a user":                   {"allowURLs: [git@git.example.com]", []string{"/allowURLs/0", "not"}},
		"a name for an address":               {"allowAddresses: [git.example.com]", []string{"/allowAddresses/0", "pattern"}},
		"less grace than the last push takes": {"terminationGracePeriodSeconds: 30", []string{"terminationGracePeriodSeconds 30", "80 at least", "stopPushTimeout", "30s"}},
		"less grace than two pushes take":     {"terminationGracePeriodSeconds: 79", []string{"terminationGracePeriodSeconds 79", "80 at least"}},
		"a last push longer than the grace":   {"stopPushTimeout: 1m30s", []string{"terminationGracePeriodSeconds 90", "200 at least", "1m30s"}},
		"all of the disk":                     {"minFree: 100%", []string{"/minFree", "pattern"}},
		"more than the disk":                  {"minFree: '250%,1Gi'", []string{"/minFree", "pattern"}},
		"a part of a byte":                    {"minFree: '0.5'", []string{"/minFree", "pattern"}},
		"no number":                           {"minFree: 1.2.3Gi", []string{"/minFree", "pattern"}},
		"a label the selector uses too":       {"podLabels: {app.kubernetes.io/component: a}", []string{"/podLabels/app.kubernetes.io~1component"}},
		"an alert that is none":               {"prometheusRule: {disabled: [PerNodeAbsent]}", []string{"/prometheusRule/disabled/0", "must be one of"}},
		"percent for a share":                 {"prometheusRule: {storeAvailableBelow: 10}", []string{"/prometheusRule/storeAvailableBelow", "maximum"}},
		"a store whose parent is the root":    {"store: /data\nrequireMount: true", []string{"requireMount", "/data/git"}},
		"a store whose parent has kubelets's": {"store: /var/lib/git\nrequireMount: true", []string{"requireMount", "kubeletDir", "/var/lib/git/git"}},
		"a test of a Secret by a path":        {"test: {secret: a/b}", []string{"/test/secret", "pattern"}},
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	own := map[string]refused{"pernode": refusedByPernode(), "gitvolume": refusedByGitvolume()}
	each(t, func(t *testing.T, c chart) {
		for _, rows := range []refused{refusedByAll(), own[c.name]} {
			for name, test := range rows {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					c.wantRefused(t, test.values, test.words)
				})
			}
		}
	})
}

func (c chart) wantRefused(t *testing.T, values string, words []string) {
	t.Helper()
	rendered, err := c.template(t, values)
	if err == nil {
		t.Fatalf("%s is accepted", values)
	}
	if rendered != "" {
		t.Errorf("something is rendered all the same:\n%s", rendered)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q:\n%v", word, err)
		}
	}
}

// accepted are values, and words of what is rendered.
type accepted map[string]struct {
	values string
	words  []string
}

// acceptedByAll are values that every chart has.
func (c chart) acceptedByAll() accepted {
	return accepted{
		"a kubelet elsewhere":        {"kubeletDir: /var/lib/k0s/kubelet", []string{`"--kubelet-dir=/var/lib/k0s/kubelet"`}},
		"dots in a name":             {"store: /srv/.store/v1..2", []string{"--store=/srv/.store/v1..2"}},
		"a neighbour of the kubelet": {"store: /var/lib/kubelet-volumes", []string{"--store=/var/lib/kubelet-volumes"}},
		"an OTLP address":            {"otlpEndpoint: collector:4317", []string{`"--otlp-endpoint=collector:4317"`}},
		"an OTLP URL":                {"otlpEndpoint: https://collector.example.com:4317", []string{`"--otlp-endpoint=https://collector.example.com:4317"`}},
		"an OTLP address of IPv6":    {"otlpEndpoint: '[fd00::1]:4317'", []string{`"--otlp-endpoint=[fd00::1]:4317"`}},
		"no toleration":              {"tolerations: []", nil},
		"no priority":                {"priorityClassName: ''", nil},
		"whole CPUs as a number":     {"resources: {limits: {cpu: 1}}", []string{"cpu: 1"}},
		"update by hand":             {"updateStrategy: {type: OnDelete}", []string{"type: OnDelete"}},
		"a part of another chart":    {"global: {anything: 1}", nil},
		"an image loaded by hand":    {"image: {registry: '', repository: localhost/driver, tag: dev}", []string{`image: "localhost/driver:dev"`}},
		"a registry with a port":     {"image: {registry: '10.0.0.1:5000'}", []string{`image: "10.0.0.1:5000/` + c.name + `:devel"`}},
	}
}

func acceptedByPernode() accepted {
	return accepted{
		"the longest kubelet path":               {"kubeletDir: /" + strings.Repeat("k", 62), nil},
		"a composed time":                        {"sweepEvery: 1h30m", []string{"--sweep-every=1h30m"}},
		"a store's share in scientific notation": {"prometheusRule: {enabled: true, storeAvailableBelow: 5e-2}", []string{"< 0.05"}},
	}
}

func acceptedByGitvolume() accepted {
	return accepted{
		"the longest kubelet path":               {"kubeletDir: /" + strings.Repeat("k", 67), nil},
		"a composed time":                        {"trashKeep: 1h30m", []string{"--trash-keep=1h30m"}},
		"no last push and no trash":              {"stopPushTimeout: 0s\ntrashKeep: 0s", []string{"--stop-push-timeout=0s", "--trash-keep=0s"}},
		"a last push just short of grace":        {"stopPushTimeout: 35s999ms", []string{"--stop-push-timeout=35s999ms"}},
		"twice the last push and 20 s":           {"terminationGracePeriodSeconds: 80", []string{"terminationGracePeriodSeconds: 80"}},
		"nothing kept free":                      {"minFree: '0'", []string{`"--min-free=0"`}},
		"no part kept free":                      {"minFree: 0%", []string{`"--min-free=0%"`}},
		"no quantity kept free":                  {"minFree: 0Gi", []string{`"--min-free=0Gi"`}},
		"nearly all kept free":                   {"minFree: '99.9%,1.5Ti'", []string{`"--min-free=99.9%,1.5Ti"`}},
		"a quantity kept free":                   {"minFree: 500Mi", []string{`"--min-free=500Mi"`}},
		"patterns of URLs":                       {"allowURLs: ['https://git.example.com:8443/shop/*', '*.example.org']", []string{`"--allow-url=https://git.example.com:8443/shop/*"`, `"--allow-url=*.example.org"`}},
		"addresses of IPv6":                      {"allowAddresses: ['fd00::/8', '10.0.0.1']", []string{`"--allow-address=fd00::/8"`, `"--allow-address=10.0.0.1"`}},
		"a test by ssh":                          {"test: {url: 'git@git.example.com:shop/config', secret: deploy-key}", []string{`url: "git@git.example.com:shop/config"`, "name: deploy-key"}},
		"a store's share in scientific notation": {"prometheusRule: {enabled: true, storeAvailableBelow: 5e-2}", []string{"< 0.05"}},
	}
}

func TestValuesThatAreAccepted(t *testing.T) {
	own := map[string]accepted{"pernode": acceptedByPernode(), "gitvolume": acceptedByGitvolume()}
	each(t, func(t *testing.T, c chart) {
		for _, rows := range []accepted{c.acceptedByAll(), own[c.name]} {
			for name, test := range rows {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					c.wantAccepted(t, test.values, test.words)
				})
			}
		}
	})
}

func (c chart) wantAccepted(t *testing.T, values string, words []string) {
	t.Helper()
	rendered := c.mustTemplate(t, values)
	if _, err := decode(rendered); err != nil {
		t.Error(err)
	}
	for _, word := range words {
		if !strings.Contains(rendered, word) {
			t.Errorf("what is rendered does not say %q:\n%s", word, rendered)
		}
	}
}

// schema is what the test below needs to know of a JSON schema.
type schema struct {
	Type                 string            `json:"type"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
	Items                *schema           `json:"items"`
}

// An object whose fields are listed takes no others: a typing error is never
// passed over.
func TestTheSchemaIsStrict(t *testing.T) {
	each(t, wantStrictSchema)
}

func wantStrictSchema(t *testing.T, c chart) {
	var root schema
	if err := json.Unmarshal([]byte(readFile(t, c.dir(), "values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}
	strict := 0
	var walk func(path string, s schema)
	walk = func(path string, s schema) {
		if len(s.Properties) > 0 {
			strict++
			if string(s.AdditionalProperties) != "false" {
				t.Errorf("%s takes fields that are not listed", path)
			}
		}
		for name, below := range s.Properties {
			walk(path+"."+name, below)
		}
		if s.Items != nil {
			walk(path+"[]", *s.Items)
		}
	}
	walk("values", root)
	if strict < 10 {
		t.Errorf("only %d objects were found", strict)
	}
}
