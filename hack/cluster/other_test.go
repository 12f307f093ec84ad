package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/quote"
)

func TestClusterOf(t *testing.T) {
	rows := []struct {
		name, line string
		want       other
	}{
		{"a control machine", "/repo/bin/cluster machine /var/lib/other/control/machine.json ", other{"/var/lib/other", "/repo/bin/cluster"}},
		{"a node", "/repo/bin/cluster machine /var/lib/other/node-1/machine.json ", other{}},
		{"an editor", "vi /var/lib/other/control/machine.json ", other{}},
		{"another command", "grep machine /x/control/machine.json.bak ", other{}},
		{"a kernel thread", "", other{}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := clusterOf([]byte(strings.ReplaceAll(row.line, " ", "\x00"))); got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}

// A person has to see whose it is, and how to look at it, before how to end it.
func TestInTheWay(t *testing.T) {
	checkout, state := t.TempDir(), filepath.Join(t.TempDir(), "it's state")
	if err := os.MkdirAll(filepath.Join(state, "control"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "control/machine.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := other{state: state, program: filepath.Join(checkout, "bin/cluster")}
	rest := o.inTheWay().Error()
	if strings.Contains(rest, "\n") {
		t.Errorf("%q has more than a line", rest)
	}
	for _, words := range []string{
		"it was started on 2", " from " + checkout, "which belongs to " + ownerOf(checkout),
		"LIKEN_CLUSTER_STATE=" + quote.Shell(state), "bin/cluster status", "if it is yours", "make cluster-down",
	} {
		_, after, found := strings.Cut(rest, words)
		if !found {
			t.Fatalf("%q is missing, or too early, in %q", words, o.inTheWay())
		}
		rest = after
	}
	gone := other{state: filepath.Join(state, "gone"), program: filepath.Join(checkout, "gone/bin/cluster")}
	if said := gone.inTheWay().Error(); !strings.Contains(said, "it was started from "+checkout+"/gone. With") {
		t.Errorf("of a checkout that was deleted: %q", said)
	}
}
