package machine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/hack/cluster/cgroup"
	"liken.sh/hack/cluster/initd"
	"liken.sh/hack/cluster/layout"
)

func TestParseStat(t *testing.T) {
	fields := " S 1 2 2 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 8192"
	for _, name := range []string{"(sh)", "(a b)", "(evil) R 1 2 3)", "()"} {
		state, started, err := parseStat("12 " + name + fields)
		if err != nil || state != "S" || started != 4711 {
			t.Errorf("%s: got %q, %d, %v", name, state, started, err)
		}
	}
	for _, stat := range []string{"", "12 (sh)", "12 sh" + fields, "12 (sh) S 1 2"} {
		if _, _, err := parseStat(stat); err == nil {
			t.Errorf("%q is taken", stat)
		}
	}
}

func TestRecordedIsTheVeryProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "process.json")
	if _, err := recorded(file); !errors.Is(err, errGone) {
		t.Fatalf("nothing recorded: got %v", err)
	}
	command := exec.Command("sleep", "600")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Process.Kill()
	running, err := observe(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := running.record(file); err != nil {
		t.Fatal(err)
	}
	if got, err := recorded(file); err != nil || got != running {
		t.Fatalf("got %+v, %v", got, err)
	}
	for name, other := range map[string]process{
		"a later process of the same number": {PID: running.PID, Started: running.Started + 1, Boot: running.Boot},
		"a boot before this one":             {PID: running.PID, Started: running.Started, Boot: "another"},
	} {
		if err := other.record(file); err != nil {
			t.Fatal(err)
		}
		if _, err := recorded(file); !errors.Is(err, errGone) {
			t.Errorf("%s is taken for the one recorded: %v", name, err)
		}
	}
	// Not waited for, so it stays a zombie.
	if err := kill(running); err != nil {
		t.Fatal(err)
	}
	if err := running.record(file); err != nil {
		t.Fatal(err)
	}
	if _, err := recorded(file); !errors.Is(err, errGone) {
		t.Errorf("a zombie is taken for a running process: %v", err)
	}
}

func TestFailureNamesServiceAndShowsLog(t *testing.T) {
	cluster, err := layout.New(t.TempDir(), t.TempDir(), "10.213.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	m := New(layout.Control, cluster, cgroup.Tree{})
	log := m.LogFile("etcd")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte(strings.Repeat("early\n", 50)+"no space left on device\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := m.Explain(initd.Status{Name: "etcd", Starts: 3, LastEnd: "exit status 1"}).Error()
	for _, want := range []string{"etcd on control", "3 times", "exit status 1", log, "no space left on device"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n > 20 {
		t.Errorf("the error has %d lines", n)
	}
}
