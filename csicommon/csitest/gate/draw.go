package gate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The variables of who wants more faults of each error in each part of a life, or all there
// can be (-1), or those of another run again. Without them each part has one.
const (
	wantedVariable = "LIKEN_TEST_FAULTS"
	seedVariable   = "LIKEN_TEST_FAULTS_SEED"
)

// Draw chooses at random what is to fail.
type Draw struct {
	random  *rand.Rand
	wanted  int
	isAsked bool
}

// NewDraw reads from the environment how much is wanted.
func NewDraw(t testing.TB) *Draw {
	t.Helper()
	seed := number(t, seedVariable, time.Now().UnixNano())
	t.Logf("%s=%d has these faults again", seedVariable, seed)
	return &Draw{
		random: rand.New(rand.NewPCG(uint64(seed), 0)), wanted: int(number(t, wantedVariable, 1)),
		isAsked: os.Getenv(wantedVariable) != "",
	}
}

func number(t testing.TB, variable string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Chosen is a call that is to fail.
type Chosen struct {
	Errno syscall.Errno
	At    int
}

// Of chooses among the calls of one part of a life, of which so many can fail with which
// error, spread over them.
func (d *Draw) Of(counts map[syscall.Errno]int) (all []Chosen) {
	errors := Faults()
	if !d.isAsked {
		errors = errors[d.random.IntN(len(errors)):][:1]
	}
	for _, errno := range errors {
		n, wanted := counts[errno], d.wanted
		if wanted < 0 || wanted > n {
			wanted = n
		}
		first := d.random.IntN(max(1, n/max(1, wanted)))
		for k := range wanted {
			all = append(all, Chosen{errno, 1 + first + k*n/wanted})
		}
	}
	return all
}

// EachFault has a life of these parts be lived without a fault, and then once for each call
// that is chosen of a part, which fails in it. live is told which, with At 0 for none, and
// gives how many calls of each part can fail with which error, and what became of the fault.
func EachFault(t *testing.T, parts []string, live func(t *testing.T, part int, chosen Chosen) ([]map[syscall.Errno]int, *Fault)) {
	t.Helper()
	var counts []map[syscall.Errno]int
	t.Run("none", func(t *testing.T) { counts, _ = live(t, 0, Chosen{}) })
	t.Logf("the parts have %v calls that can fail", counts)
	draw := NewDraw(t)
	for i, part := range parts {
		if i >= len(counts) {
			t.Fatalf("%s was not told", part)
		}
		for _, chosen := range draw.Of(counts[i]) {
			t.Run(fmt.Sprintf("%d-%d-%d", i, chosen.Errno, chosen.At), func(t *testing.T) { // Sockets have short names.
				t.Parallel()
				t.Logf("%s, with %q of call %d of about %d", part, chosen.Errno, chosen.At, counts[i][chosen.Errno])
				_, fault := live(t, i, chosen)
				call, _ := fault.Done()
				t.Logf("the call was %s", call)
			})
		}
	}
}

// Tells expects of the kubelet's call that failed after the fault that its answer says what
// happened, under a code that has the kubelet repeat it.
func (f *Fault) Tells(t testing.TB, what string, err error) {
	t.Helper()
	call, isOwn := f.Done()
	if call == "" {
		t.Errorf("%s: nothing was made to fail, and it does: %v", what, err)
		return
	}
	switch status.Code(err) {
	case codes.Internal, codes.Unavailable, codes.Aborted, codes.ResourceExhausted, codes.FailedPrecondition:
	default:
		t.Errorf("%s fails after %s with the code %v: %v", what, call, status.Code(err), err)
	}
	// The C library's words begin with a capital.
	if message := status.Convert(err).Message(); isOwn && !strings.Contains(strings.ToLower(message), f.Errno.Error()) {
		t.Errorf("%s fails after %s with %q, which does not say %q", what, call, message, f.Errno)
	}
}

// Open are the files below the directories that a process has open.
func Open(t testing.TB, pid int, dirs ...string) (paths []string) {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	within := Fault{Within: dirs}
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && within.isWithin(path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
