package cluster

import (
	"strings"
	"testing"
)

// ReportFailure logs what a person would look at, when the test has failed: the
// state of the namespaces, and more commands of kubectl.
func (c *Cluster) ReportFailure(t testing.TB, namespaces []string, more ...string) {
	if !t.Failed() {
		return
	}
	commands := more
	for _, namespace := range namespaces {
		in := " --namespace " + namespace
		commands = append(commands,
			"get pods --output wide"+in,
			"get events --sort-by .lastTimestamp"+in,
			"describe pods"+in,
			"get persistentvolumeclaims"+in,
		)
	}
	commands = append(commands, "get persistentvolumes", "get nodes --output wide")
	for _, command := range commands {
		text, err := c.Try("", append([]string{"kubectl"}, strings.Fields(command)...)...)
		if err != nil {
			text += err.Error()
		}
		t.Logf("$ kubectl %s\n%s", command, text)
	}
}
