package nodetest

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/process"
)

// The variables of who wants more faults of each error in each part of a life, or all there
// can be (-1), or those of another run again.
const (
	faultsWanted = "LIKEN_TEST_FAULTS"
	faultsSeed   = "LIKEN_TEST_FAULTS_SEED"
)

// ill is a life in which one system call of the plugin's or of a child's fails.
type ill struct {
	*life
	gate   *gate.Gate
	fault  *gate.Fault
	failed []error // The calls of the kubelet that did.
}

func newIll(t *testing.T) *ill {
	l := &ill{life: lifeWithoutPlugin(t, true)}
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
	call, isOwn := l.fault.Done()
	if call == "" {
		return false
	}
	l.t.Logf("%s: %v", what, err)
	l.failed = append(l.failed, err)
	switch status.Code(err) {
	case codes.Internal, codes.Unavailable, codes.Aborted, codes.ResourceExhausted, codes.FailedPrecondition:
	default:
		l.t.Errorf("the %s fails with %v: %v", what, status.Code(err), err)
	}
	if message := status.Convert(err).Message(); isOwn && !strings.Contains(message, l.fault.Errno.Error()) {
		l.t.Errorf("the %s fails with %q, which does not say %q", what, message, l.fault.Errno)
	}
	return len(l.failed) == 1
}

// tell tells the life, with the fault in the part by that number; at 0 there is none. It
// gives how many calls can fail with which error in each part.
func (l *ill) tell(part int, errno syscall.Errno, at int) (counts []map[syscall.Errno]int) {
	l.t.Helper()
	for i, p := range parts {
		if i == 1 {
			l.arm()
		}
		if at == 0 || i == part {
			l.fault = &gate.Fault{Errno: errno, At: at, Within: []string{l.n.Store, l.n.KubeletDir}, Pid: l.n.Plugin.Pid}
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
	open := openFiles(l.t, l.n.Plugin.Pid(), l.n.Store)
	l.life.ends()
	if l.n.Plugin.HasEnded() && strings.Contains(l.n.Plugin.Log.String(), "panic") {
		l.t.Error("the plugin panicked")
	}
	_ = open
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

// openFiles are those of a process below a directory.
func openFiles(t testing.TB, pid int, dir string) (paths []string) {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, dir) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// A system call about the store or the kubelet's directory fails, of any part of a life, in
// the plugin or in a git of its own. The plugin lives, the kubelet's call succeeds or says
// what failed, and succeeds when it is repeated; nothing is lost, nothing is committed twice,
// and nothing is left: no mount, no open file and no temporary one.
func TestFaultAtACall(t *testing.T) {
	var counts []map[syscall.Errno]int
	t.Run("none", func(t *testing.T) {
		l := newIll(t)
		counts = l.tell(0, 0, 0)
		l.ends()
	})
	t.Logf("the parts have %v calls that can fail", counts)
	seed := uint64(number(t, faultsSeed, time.Now().UnixNano()))
	t.Logf("%s=%d has these faults again", faultsSeed, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	wanted, isAsked := int(number(t, faultsWanted, 0)), os.Getenv(faultsWanted) != ""
	for i, p := range parts {
		if i >= len(counts) {
			t.Fatalf("%s was not told", p.name)
		}
		errors := gate.Faults()
		if !isAsked { // One each.
			errors, wanted = errors[random.IntN(len(errors)):][:1], 1
		}
		for _, errno := range errors {
			for _, at := range sample(random, counts[i][errno], wanted) {
				t.Run(fmt.Sprintf("%d-%d-%d", i, errno, at), func(t *testing.T) { // Sockets have short names.
					t.Parallel()
					t.Logf("%s, with %q of call %d of about %d", p.name, errno, at, counts[i][errno])
					l := newIll(t)
					l.tell(i, errno, at)
					l.ends()
					call, _ := l.fault.Done()
					t.Logf("the call was %s", call)
				})
			}
		}
	}
}

// sample is so many of the numbers from 1 to n, spread over them; -1: all.
func sample(random *rand.Rand, n, wanted int) (numbers []int) {
	if wanted < 0 || wanted > n {
		wanted = n
	}
	if wanted == 0 {
		return nil
	}
	first := random.IntN(max(1, n/wanted))
	for k := range wanted {
		numbers = append(numbers, 1+first+k*n/wanted)
	}
	return numbers
}

var _ = context.Background
var _ = process.Await
