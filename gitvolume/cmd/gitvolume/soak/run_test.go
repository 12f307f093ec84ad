package soak

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/leaks"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/netns"
)

// torture is one run.
type torture struct {
	t        *testing.T
	seed     uint64
	place    string
	log      io.Writer
	link     *netns.Link
	hasDisk  bool
	began    time.Time
	findings findings

	plugin       *plugin
	cables       []*cable
	repositories []*repository
	colleagues   []*colleague
	writers      []*writer
	readers      []*reader
	pods         atomic.Int64

	// none is what there was without a plugin, and idle what one had that did nothing yet.
	none, idle leaks.Snapshot

	kills, pushesStopped int
	commits              int // Of the plugin, on the remotes' branches.
	isFull               bool
	suffered             map[string]int
}

// run tortures the plugin for so long, has it come to rest, and looks at what is left.
// Operations and faults derive from the seed. When they meet, the machine decides.
func run(t *testing.T, seed uint64, long time.Duration) {
	mountns.Require(t)
	r := &torture{t: t, seed: seed, place: os.Getenv(placeVariable), began: time.Now(), suffered: map[string]int{}}
	fmt.Printf("soak gitvolume: seed=%d\n", seed)
	if lacks := os.Getenv(lackVariable); lacks != "" {
		fmt.Printf("soak gitvolume: without %s\n", lacks)
	}
	log, err := os.Create(filepath.Join(r.place, "run.log"))
	if err != nil {
		t.Fatal(err)
	}
	r.log = log
	defer r.tell() // Also when something ends the test, and before that takes away what it made.
	if r.link, err = netns.Fresh(); err != nil {
		t.Fatalf("have a network: %v", err)
	}
	_, err = os.Stat(filepath.Join(r.place, diskName, "lost+found"))
	r.hasDisk = err == nil
	r.build()
	r.torment(long)
	r.check()
}

// build makes all that there is.
func (r *torture) build() {
	first, second := r.newRepository("first"), r.newRepository("second")
	r.serveHTTP(first)
	if strings.Contains(os.Getenv(lackVariable), "SSH") {
		r.serveHTTP(second)
	} else {
		r.serveSSH(second)
	}
	r.newPlugin()
	r.addWriter("w1", first, "main", "notes")
	r.addWriter("w2", first, "main", "notes")
	r.addWriter("w3", first, "dev", "plain")
	r.addWriter("w4", second, "main", "notes")
	r.addColleagues()
	r.addReader("r1", first, "main")
	r.addReader("r2", first, "dev")
	r.addReader("r3", second, "main")
}

// torment has all of it happen at a time, and ends with everything but the plugin's
// work at rest: pods have their volumes, and nobody writes.
func (r *torture) torment(long time.Duration) {
	if err := leaks.Adopt(); err != nil {
		r.t.Fatal(err)
	}
	r.none = leaks.Look(r.t, r.ofTheNode())
	r.plugin.start(r.isDiskFull)
	r.warmUp()
	r.idle = leaks.Look(r.t, r.ofThePlugin())
	ctx, over := context.WithCancel(context.Background())
	rest, leave := context.WithCancel(context.Background())
	var pods, colleagues sync.WaitGroup
	for _, w := range r.writers {
		pods.Go(func() { w.live(ctx, rest, w.use) })
	}
	for _, reader := range r.readers {
		pods.Go(func() { reader.live(ctx, rest, reader.use) })
	}
	for _, c := range r.colleagues {
		colleagues.Go(func() { c.work(ctx) })
	}
	// The pods are gone when the test ends, however it does.
	defer func() {
		over()
		leave()
		pods.Wait()
		colleagues.Wait()
	}()
	kinds := slices.DeleteFunc(kinds(), func(k kind) bool { return k.lane == "disk" && !r.hasDisk })
	r.settles("all volumes to have had a pod", time.Now().Add(stuck), r.haveBegun)
	r.began = time.Now()
	r.suffer(schedule(of(r.seed, "faults"), kinds, long))
	time.Sleep(time.Until(r.began.Add(long)))
	r.say("the faults are over")
	over()
	colleagues.Wait()
	r.comeToRest()
}

// The verdicts.
const (
	passed = "passed"
	failed = "FAILED"
)

// haveBegun wants every volume to have had a pod, whether that is gone again or not.
func (r *torture) haveBegun() string {
	seats := []*seat{}
	for _, w := range r.writers {
		seats = append(seats, w.seat)
	}
	for _, reader := range r.readers {
		seats = append(seats, reader.seat)
	}
	for _, s := range seats {
		if !s.hadPod.Load() {
			return s.volume.Handle + " has had none"
		}
	}
	return ""
}

// warmUp has the plugin have what it makes once and keeps, such as its way to watch files.
func (r *torture) warmUp() {
	seat := r.writers[0].seat
	_ = seat.publish() && seat.unpublish() && seat.unstage() // What fails is found.
}

// tell writes the verdict.
func (r *torture) tell() {
	if r.figure(func(w *writer) int { return w.application.journal.count() }) == 0 {
		r.findings.add("nobody wrote anything")
	}
	texts, count := r.findings.all()
	for _, text := range texts {
		r.t.Error(text)
	}
	if count > len(texts) {
		r.t.Errorf("and %d more", count-len(texts))
	}
	verdict := passed
	if r.t.Failed() {
		verdict = failed
		r.keep()
	}
	text := fmt.Sprintf("soak gitvolume: %s seed=%d time=%s %s\n", verdict, r.seed, time.Since(r.began).Round(time.Second), r.figures())
	if err := os.WriteFile(filepath.Join(r.place, verdictName), []byte(text), 0o600); err != nil {
		r.t.Error(err)
	}
}

// figure is the sum of what the writers have.
func (r *torture) figure(of func(w *writer) int) (sum int) {
	for _, w := range r.writers {
		sum += of(w)
	}
	return sum
}

// figures are what happened.
func (r *torture) figures() string {
	operations := r.figure(func(w *writer) int { return w.application.journal.count() })
	overtaken := r.figure(func(w *writer) int { return w.application.journal.overtaken })
	looks := r.figure(func(w *writer) int { return w.looks })
	reads, pushes, merges := 0, 0, 0
	var calls, failures int64
	for _, w := range r.writers {
		calls, failures = calls+w.calls.Load(), failures+w.failures.Load()
	}
	for _, reader := range r.readers {
		reads += reader.reads
		calls, failures = calls+reader.calls.Load(), failures+reader.failures.Load()
	}
	for _, c := range r.colleagues {
		pushes, merges = pushes+c.pushes, merges+c.merges
	}
	var faults []string
	for name, count := range r.suffered {
		faults = append(faults, fmt.Sprintf("%s:%d", name, count))
	}
	slices.Sort(faults)
	starts, refused := 0, 0
	if r.plugin != nil {
		starts, refused = r.plugin.starts, r.plugin.refused
	}
	return fmt.Sprintf("operations=%d kills=%d faults=%s pods=%d calls=%d (%d tried again) reads=%d looks=%d commits=%d upstream=%d merges=%d stopped-in-push=%d overtaken=%d starts=%d (%d refused)",
		operations, r.kills, strings.Join(faults, ","), r.pods.Load(), calls, failures, reads, looks, r.commits, pushes, merges, r.pushesStopped, overtaken, starts, refused)
}

// keep copies what would go with the test. The store is in the place already.
func (r *torture) keep() {
	for _, repository := range r.repositories {
		if err := os.CopyFS(filepath.Join(r.place, "remote-"+repository.name), os.DirFS(filepath.Dir(repository.bare.Dir))); err != nil {
			r.t.Log(err)
		}
	}
}
