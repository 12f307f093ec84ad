package main

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// ill is the life of a volume in which one system call of the plugin's fails.
type ill struct {
	*node
	t      *testing.T
	v      kubelet.Volume
	gate   *gate.Gate
	fault  *gate.Fault
	pid    atomic.Int64 // The plugin's, once it is started.
	failed int
	open   []string // What the plugin has open when it does nothing.
}

func newIll(t *testing.T) *ill {
	t.Helper()
	return &ill{node: newNode(t, "h1"), t: t, v: volume("h1")}
}

// call is one of the kubelet's, which repeats it until it succeeds: at once, after a fault.
func (l *ill) call(what string, call func() error) {
	l.t.Helper()
	process.Await(l.t, "the "+what, func() bool {
		err := call()
		if err == nil {
			return true
		}
		l.t.Logf("%s: %v", what, err)
		l.fault.Tells(l.t, what, err)
		if l.failed++; l.failed > 1 {
			l.t.Fatalf("the %s fails again: %v", what, err)
		}
		return false
	})
	if l.Plugin.HasEnded() {
		l.t.Fatalf("the plugin ended at the %s", what)
	}
}

func (l *ill) publish(i int) {
	l.t.Helper()
	l.call("publish", func() error { return l.Publish(l.v, rig.Pod(i)) })
	l.WantMounts(l.Target(l.v.PV, i), 1)
}

func (l *ill) unpublish(i int) {
	l.t.Helper()
	l.call("unpublish", func() error { return l.Unpublish(l.v, rig.Pod(i)) })
	l.WantMounts(l.Target(l.v.PV, i), 0)
	if exists(l.Target(l.v.PV, i)) {
		l.t.Error("the target is left")
	}
}

// begin starts the plugin, again if it says at the end of the first one what failed.
func (l *ill) begin() {
	l.t.Helper()
	for {
		cmd := l.Command(sweepSoon...)
		l.gate = gate.New(l.t, cmd, gate.FaultyCalls()...)
		l.gate.Set(l.fault.Decide)
		l.pid.Store(0)
		l.Plugin = process.Start(l.t, cmd)
		l.pid.Store(int64(l.Plugin.Pid()))
		process.Await(l.t, "the start", func() bool {
			return l.Plugin.HasEnded() || strings.Contains(l.Plugin.Log.String(), "offering registration to the kubelet")
		})
		if !l.Plugin.HasEnded() {
			break
		}
		call, isOwn := l.fault.Done()
		said := l.Plugin.Log.String()
		l.t.Logf("after %s: %s", call, said)
		if l.failed++; l.failed > 1 || call == "" || isOwn && !strings.Contains(said, l.fault.Errno.Error()) || l.Plugin.Wait() < 1 {
			l.t.Fatalf("the plugin ended with code %d: %s", l.Plugin.Wait(), said)
		}
	}
	l.t.Cleanup(l.Plugin.Stop)
	l.Register()
}

type faultyPart struct {
	name string
	tell func(l *ill)
}

// faultyParts are those of a life.
func faultyParts() []faultyPart {
	return []faultyPart{
		{"start", (*ill).begin},
		{"publish", func(l *ill) { l.publish(1) }},
		{"publish again", func(l *ill) {
			writeFile(l.t, filepath.Join(l.Target(l.v.PV, 1), "f"), "x")
			l.publish(1)
		}},
		{"publish of another pod", func(l *ill) {
			err := l.Publish(l.v, rig.Pod(2))
			if call, _ := l.fault.Done(); call != "" && status.Code(err) == codes.Internal {
				err = l.Publish(l.v, rig.Pod(2))
			}
			rig.WantCode(l.t, err, codes.FailedPrecondition)
			l.WantMounts(l.Target(l.v.PV, 2), 0)
			l.WantMounts(l.Target(l.v.PV, 1), 1)
		}},
		{"unpublish", func(l *ill) { l.unpublish(1) }},
		{"publish of what is there", func(l *ill) {
			l.publish(3)
			if !exists(filepath.Join(l.Target(l.v.PV, 3), "f")) {
				l.t.Error("what the first pod wrote is lost")
			}
			l.unpublish(3)
		}},
		{"removal", func(l *ill) {
			l.API.DeleteVolume("h1")
			process.Await(l.t, "the removal", func() bool {
				return !exists(l.copyDir("h1")) && names(l.t, filepath.Join(l.Store, "trash")) == nil
			})
		}},
	}
}

// tell tells the life, with the fault in the part by that number; At 0: there is none. It
// gives how many calls can fail with which error in each part.
func (l *ill) tell(part int, chosen gate.Chosen) (counts []map[syscall.Errno]int) {
	l.t.Helper()
	pid := func() int { return int(l.pid.Load()) }
	within := []string{l.Store, l.KubeletDir}
	l.fault = &gate.Fault{Pid: pid, Within: within}
	for i, p := range faultyParts() {
		if chosen.At == 0 || i == part {
			l.fault = &gate.Fault{Errno: chosen.Errno, At: chosen.At, Within: within, Pid: pid}
			if l.gate != nil {
				l.gate.Set(l.fault.Decide)
			}
		}
		p.tell(l)
		if i == 0 {
			l.open = l.openAtRest()
		}
		counts = append(counts, l.fault.Counts())
	}
	return counts
}

// openAtRest are the files of the store that the plugin has open, the fewest of many looks:
// now and then a sweep opens more.
func (l *ill) openAtRest() []string {
	l.t.Helper()
	fewest := gate.Open(l.t, l.Plugin.Pid(), l.Store)
	for range 100 {
		if open := gate.Open(l.t, l.Plugin.Pid(), l.Store); len(open) < len(fewest) {
			fewest = open
		}
	}
	return fewest
}

// ends expects nothing to be left of the life but an empty store.
func (l *ill) ends() {
	l.t.Helper()
	var open []string
	defer func() {
		if l.t.Failed() {
			l.t.Logf("the plugin has %q open, and had %q at its start", open, l.open)
		}
	}()
	process.Await(l.t, "the files to be closed", func() bool {
		open = gate.Open(l.t, l.Plugin.Pid(), l.Store)
		return len(open) <= len(l.open)
	})
	for _, dir := range []string{"copies", "holds", "trash"} {
		if left := names(l.t, filepath.Join(l.Store, dir)); left != nil {
			l.t.Errorf("%s has %q", dir, left)
		}
	}
	err := filepath.WalkDir(l.Store, func(path string, entry fs.DirEntry, err error) error {
		if strings.HasSuffix(entry.Name(), ".next") || strings.HasPrefix(entry.Name(), ".new") {
			l.t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		l.t.Error(err)
	}
	l.Plugin.Stop()
	if said := l.Plugin.Log.String(); strings.Contains(said, "panic") {
		l.t.Error("the plugin panicked")
	}
}

// A system call about the store or the kubelet's directory fails, in any part of a volume's
// life. The plugin lives, or says at its start why not; the kubelet's call succeeds or says
// what failed, and succeeds when it is repeated; nothing is lost and nothing is left: no
// mount, no open file and no temporary one. A second pod is refused whatever fails.
func TestFaultAtACall(t *testing.T) {
	var names []string
	for _, p := range faultyParts() {
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
