package charts

import (
	"path/filepath"
	"testing"
)

// chart is one of the charts, with what its tests go by.
type chart struct {
	// name is that of its directory, and of the release it is rendered as.
	name      string
	namespace string
	// docs is the driver's documentation, seen from this package, and flags the page of
	// it that lists the plugin's flags.
	docs, flags string
	// driver is the name in CSI, store where its directory on a node is by default, and
	// plugin what the node plugin's objects are called.
	driver, store, plugin string
	// command are the arguments that come before the plugin's flags.
	command []string
	// scratch are the directories of the plugin's container that are no node's.
	scratch []string
	// objects are how many are rendered by default and of the full values.
	objects, fullObjects int
	// others are values that have rendered what neither those do.
	others string
	// withTest are values without which there is no pod for helm test.
	withTest string
	// unset are flags that no value is for: what a cluster has no use for, or extraArgs
	// has.
	unset []string
	observed
}

func charts() []chart {
	return []chart{
		{
			name: "pernode", namespace: "per-node",
			docs: "../../pernode/docs", flags: "reference/flags.md",
			driver: "per-node.liken.sh", store: "/var/lib/liken/per-node", plugin: "pernode",
			objects: 8, fullObjects: 7, others: "storageClass: {create: true}",
			unset:    []string{"standalone", "version"},
			observed: observedOfPerNode(),
		},
		{
			name: "gitvolume", namespace: "gitvolume",
			docs: "../../gitvolume/docs", flags: "reference/node.md",
			driver: "git.liken.sh", store: "/var/lib/liken/git", plugin: "gitvolume-node",
			command: []string{"node"}, scratch: []string{"/tmp"},
			objects: 16, fullObjects: 19, others: "controller: {serviceAccount: {create: true}}\nwebhook: {enabled: true, namespaces: [shop], replicas: 2}\nuninstallCheck: true",
			withTest: "test: {url: 'https://git.example.com/shop/config.git'}",
			unset:    []string{"standalone", "version"},
			observed: observedOfGit(),
		},
	}
}

// each runs a test on each chart.
func each(t *testing.T, test func(t *testing.T, c chart)) {
	t.Parallel()
	for _, c := range charts() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// called finds the chart of that name.
func called(t *testing.T, name string) chart {
	t.Helper()
	for _, c := range charts() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("there is no chart %q", name)
	return chart{}
}

func (c chart) dir() string { return "../../charts/" + c.name }

// testdata is the path of a file that the chart's tests have.
func (c chart) testdata(name string) string { return filepath.Join("testdata", c.name, name) }

// full is a values file that sets everything to something else than its default.
func (c chart) full(t *testing.T) string {
	t.Helper()
	return readFile(t, c.testdata("full.yaml"))
}
