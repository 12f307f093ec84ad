package nodetest

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"liken.sh/csicommon/csitest/gate"
)

// ill is a life in which one system call of the plugin's or of a child's fails.
type ill struct {
	*life
	gate   *gate.Gate
	fault  *gate.Fault
	failed []error // The calls of the kubelet that did.
}

func newIll(t *testing.T) *ill {
	l := &ill{life: lifeWithoutPlugin(t, true), fault: &gate.Fault{}}
	l.excused = l.excuses
	l.start()
	return l
}

func (l *ill) start() {
	l.t.Helper()
	cmd := l.n.Command("--allow-insecure")
	l.gate = gate.New(l.t, cmd, gate.FaultyCalls()...)
	l.n.StartUnregistered(cmd)
	l.n.Register()
}

// arm is a restart with a class of the volume. It is not for faults.
func (l *ill) arm() {
	l.t.Helper()
	l.gate.Set(nil)
	l.n.Plugin.Stop()
	l.n.armed(l.v.Handle)
	l.start()
	l.republish()
}

// excuses expects of a call that failed that it says what happened, under a code that has
// the kubelet repeat it.
func (l *ill) excuses(what string, err error) bool {
	l.t.Helper()
	if l.n.Plugin.HasEnded() {
		l.t.Fatalf("the plugin ended at the %s: %v", what, err)
	}
	l.t.Logf("%s: %v", what, err)
	l.failed = append(l.failed, err)
	l.fault.Tells(l.t, "the "+what, err)
	return len(l.failed) == 1
}

// tell tells the life, with the fault in the part by that number; At 0: there is none. It
// gives how many calls can fail with which error in each part.
func (l *ill) tell(part int, chosen gate.Chosen) (counts []map[syscall.Errno]int) {
	l.t.Helper()
	for i, p := range parts {
		if i == 1 {
			l.arm()
		}
		if chosen.At == 0 || i == part {
			l.fault = &gate.Fault{Errno: chosen.Errno, At: chosen.At, Within: []string{l.n.Store, l.n.KubeletDir}, Pid: l.n.Plugin.Pid}
			l.gate.Set(l.fault.Decide)
		}
		p.tell(l.life)
		counts = append(counts, l.fault.Counts())
	}
	return counts
}

// ends is that of the life, and expects nothing to be left of the fault.
func (l *ill) ends() {
	l.t.Helper()
	l.life.ends()
	if strings.Contains(l.n.Plugin.Log.String(), "panic") {
		l.t.Error("the plugin panicked")
	}
	l.hasNoRemains()
}

// hasNoRemains expects no file in the store that was to become another one.
func (l *ill) hasNoRemains() {
	l.t.Helper()
	err := filepath.WalkDir(l.n.Store, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		isRemain := strings.HasSuffix(name, ".next") || strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_") || strings.Contains(name, ".tmp")
		if isRemain && !strings.Contains(path, "/tree/") {
			l.t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		l.t.Error(err)
	}
}

// A system call about the store or the kubelet's directory fails, of any part of a life, in
// the plugin or in a git of its own. The plugin lives, the kubelet's call succeeds or says
// what failed, and succeeds when it is repeated; nothing is lost, nothing is committed twice,
// and nothing is left: no mount, no open file and no temporary one.
func TestFaultAtACall(t *testing.T) {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	gate.EachFault(t, names, func(t *testing.T, part int, chosen gate.Chosen) ([]map[syscall.Errno]int, *gate.Fault) {
		t.Helper()
		l := newIll(t)
		counts := l.tell(part, chosen)
		l.ends()
		return counts, l.fault
	})
}
