package nodetest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/store"
)

// The variables of who wants more kills in each part of a life, or all there can be (-1), or
// those of another run again.
const (
	killsWanted = "LIKEN_TEST_KILLS"
	killsSeed   = "LIKEN_TEST_KILLS_SEED"
)

// life is that of a volume whose plugin is killed once.
type life struct {
	t    *testing.T
	n    *node
	gate *killer // nil: of a plugin that is not to be killed.
	v    kubelet.Volume
	died string // The step; empty: it was not killed yet.
	// isPublished tells that the kubelet has published the volume, and returns that it goes
	// on doing so after a restart, which brings the credential.
	isPublished, returns bool
	isBare               bool // There is no credential since the restart.
	// excused tells of a call that failed whether it may; nil: it may not.
	excused func(what string, err error) bool
}

var token = map[string]string{"token": "right"}

func newLife(t *testing.T, returns bool) *life {
	t.Helper()
	l := lifeWithoutPlugin(t, returns)
	l.start()
	return l
}

func lifeWithoutPlugin(t *testing.T, returns bool) *life {
	t.Helper()
	n := newNode(t)
	n.remote.Grow("main", "up", "1")
	server := gittest.StartHTTP(t, filepath.Dir(n.remote.Dir), gittest.HTTPOptions{User: "git", Password: "right"})
	return &life{t: t, n: n, returns: returns, v: kubelet.Volume{
		PV: "v", Handle: "v", AccessMode: corev1.ReadWriteOncePod, Attributes: map[string]string{"url": server.URL("/r.git")},
		StageSecret: token, PublishSecret: token,
	}}
}

// start starts a plugin behind a gate.
func (l *life) start() {
	l.t.Helper()
	cmd := l.n.Command("--allow-insecure")
	l.gate = newGate(l.t, cmd)
	l.n.StartUnregistered(cmd)
	l.n.Register()
}

// armed has the store know a class of volumes that commits sooner than any that a cluster
// takes, in place of none. No plugin runs.
func (n *node) armed(handles ...string) {
	n.T.Helper()
	opened, err := store.Open(store.Settings{Dir: n.Store, TrashKeep: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		n.T.Fatal(err)
	}
	for _, handle := range handles {
		record, err := opened.Load(handle)
		if err != nil {
			n.T.Fatal(err)
		}
		fast := policy.Default()
		fast.Quiesce, fast.MaxLatency = 50*time.Millisecond, time.Minute
		record.Class = store.Class{Name: "fast", Policy: &fast}
		if err := opened.Save(record); err != nil {
			n.T.Fatal(err)
		}
	}
	if err := opened.Close(); err != nil {
		n.T.Fatal(err)
	}
}

// arm is a restart with a class of the volume. It is not for kills.
func (l *life) arm() {
	l.t.Helper()
	l.n.Plugin.Stop()
	l.n.armed(l.v.Handle)
	l.start()
	l.republish()
}

func (l *life) republish() {
	l.t.Helper()
	l.call("republish", func(ctx context.Context) error { return l.n.Kubelet.Republish(ctx, l.v, rig.Pod(1)) })
}

// revive starts a plugin after the one that was killed; false: there is nothing to do.
func (l *life) revive() bool {
	l.t.Helper()
	if l.gate == nil || l.gate.death() == "" {
		return false
	}
	l.died, l.gate = l.gate.death(), nil
	l.n.Plugin.Wait()
	before := mounts(l.t, l.n.KubeletDir)
	l.n.Start("--allow-insecure")
	if after := mounts(l.t, l.n.KubeletDir); !maps.Equal(after, before) {
		l.t.Errorf("the restart makes of the mounts %v %v", before, after)
	}
	switch {
	case !l.isPublished:
	case l.returns:
		l.republish()
	default:
		l.isBare = true
	}
	return true
}

// call is one of the kubelet's, which repeats it until it succeeds.
func (l *life) call(what string, call func(ctx context.Context) error) {
	l.t.Helper()
	process.Await(l.t, "the "+what, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
		defer cancel()
		err := call(ctx)
		if err != nil && l.excused != nil && l.excused(what, err) {
			return false
		}
		if err != nil && !l.revive() && status.Code(err) != codes.Aborted && status.Code(err) != codes.Unavailable {
			l.t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

func (l *life) publish(i int) {
	l.t.Helper()
	l.call("publish", func(ctx context.Context) error {
		_, err := l.n.Kubelet.Publish(ctx, l.v, rig.Pod(i))
		return err
	})
	l.isPublished = true
}

func (l *life) unpublish(i int) {
	l.t.Helper()
	l.isPublished = false // The kubelet does not publish again what it takes away.
	l.call("unpublish", func(ctx context.Context) error { return l.n.Kubelet.Unpublish(ctx, l.v, rig.Pod(i)) })
}

func (l *life) unstage() {
	l.t.Helper()
	l.call("unstage", func(ctx context.Context) error { return l.n.Kubelet.Unstage(ctx, l.v) })
}

func (l *life) write(content string) {
	write(l.t, l.n.Kubelet.Target(rig.Pod(1).UID, l.v.PV), "own", content)
}

// arrives waits for what was written, unless it cannot arrive.
func (l *life) arrives(content string) {
	l.t.Helper()
	process.Await(l.t, content+" to arrive", func() bool {
		l.revive()
		return l.isBare || l.n.has("own", content)
	})
}

// part is one of the parts of a life.
type part struct {
	name string
	tell func(l *life)
}

var parts = []part{
	{"stage and publish", func(l *life) { l.publish(1) }},
	{"commit and push", func(l *life) { l.write("1"); l.arrives("1") }},
	{"rebase and move", func(l *life) { l.n.remote.Put("main", map[string]string{"up": "2"}); l.write("2"); l.arrives("2") }},
	{"unpublish", func(l *life) { l.write("3"); l.unpublish(1) }},
	{"unstage", func(l *life) { l.unstage() }},
	{"stage and publish again", func(l *life) { l.n.remote.Put("main", map[string]string{"up": "3"}); l.publish(2) }},
}

// tell tells the life, with the kill before the n-th step of the part by that number; 0:
// there is none. It gives how many steps each part had.
func (l *life) tell(killed, n int) (steps []int) {
	l.t.Helper()
	for i, p := range parts {
		if i == 1 {
			l.revive() // The kill may have come as the call was answered.
			l.arm()
		}
		if i == killed {
			l.gate.reset(l.n.Plugin, func(passed int) bool { return passed == n })
		} else if n == 0 {
			l.gate.reset(nil, nil)
		}
		p.tell(l)
		if n == 0 {
			steps = append(steps, l.gate.reset(nil, nil))
		}
	}
	l.revive()
	return steps
}

// ends expects that nothing is lost, and nothing twice, when the next pod has it all.
func (l *life) ends() {
	l.t.Helper()
	l.isBare = false
	l.publish(2)
	target := l.n.Kubelet.Target(rig.Pod(2).UID, l.v.PV)
	shows(l.t, target, "own", "3")
	process.Await(l.t, "all to arrive", func() bool { return l.n.has("own", "3") && l.n.has("up", "3") })
	shows(l.t, target, "up", "3")
	l.unpublish(2)
	l.unstage()
	for at := range mounts(l.t, l.n.KubeletDir) {
		if strings.HasPrefix(at, filepath.Join(l.n.KubeletDir, "pods")) {
			l.t.Errorf("a mount is left at %s", at)
		}
	}
	l.n.Plugin.Stop()
	l.isSound()
}

// isSound expects the repositories of both sides to be well.
func (l *life) isSound() {
	l.t.Helper()
	l.n.remote.Git("fsck", "--strict")
	repositories, err := filepath.Glob(filepath.Join(l.n.Store, "repos", "*", "HEAD"))
	if err != nil || len(repositories) != 1 {
		l.t.Errorf("the store has the repositories %q, %v", repositories, err)
	}
	for _, head := range repositories {
		fsck := exec.Command("git", "--git-dir", filepath.Dir(head), "fsck", "--strict")
		fsck.Env = gittest.Environment("/dev/null")
		if said, err := fsck.CombinedOutput(); err != nil {
			l.t.Errorf("fsck of the store's repository: %v: %s", err, said)
		}
	}
	if aside, _ := filepath.Glob(filepath.Join(l.n.Store, "aside", "*")); len(aside) > 0 {
		l.t.Errorf("%q was set aside", aside)
	}
	for ref := range l.n.remote.Refs() {
		if ref != "refs/heads/main" && ref != "refs/git-csi/metadata" {
			l.t.Errorf("the remote has %s", ref)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(l.n.remote.Git("log", "main", "--author=git-csi-driver", "--format=", "--raw", "--no-abbrev", "--", "own")) {
		change := strings.Fields(line)[3]
		if seen[change] {
			l.t.Errorf("%s was committed twice", change)
		}
		seen[change] = true
	}
	if len(seen) == 0 {
		l.t.Error("the volume committed nothing")
	}
}

// The plugin is killed before a step of any of its calls, and of what it does between them.
// The next one, to which the credential returns or not, goes on: nothing that was written is
// lost, nothing is committed twice, no repository is harmed and no mount is touched.
func TestKilledAtAStep(t *testing.T) {
	var steps []int
	t.Run("none", func(t *testing.T) {
		l := newLife(t, true)
		steps = l.tell(0, 0)
		l.ends()
	})
	t.Logf("the parts have %d steps", steps)
	seed := uint64(number(t, killsSeed, time.Now().UnixNano()))
	t.Logf("%s=%d has these kills again", killsSeed, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i, p := range parts {
		if i >= len(steps) || steps[i] == 0 {
			t.Fatalf("%s has no step", p.name)
		}
		wanted := int(number(t, killsWanted, 1))
		if wanted < 0 || wanted > steps[i] {
			wanted = steps[i]
		}
		first := random.IntN(max(1, steps[i]/max(1, wanted)))
		for k := range wanted {
			at, returns := 1+first+k*steps[i]/wanted, random.IntN(2) == 0
			t.Run(fmt.Sprintf("%d-%d", i, at), func(t *testing.T) { // Sockets have short names.
				t.Parallel()
				t.Logf("%s, killed before step %d of about %d; the credential returns: %t", p.name, at, steps[i], returns)
				l := newLife(t, returns)
				l.tell(i, at)
				t.Logf("the step was %q", l.died)
				l.ends()
			})
		}
	}
}

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
