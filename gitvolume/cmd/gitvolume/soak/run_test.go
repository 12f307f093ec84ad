//go:build soak

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

	// end is when all of it has to be over, and alive a moment before that, for who waits.
	end    time.Time
	alive  context.Context
	giveUp context.CancelFunc

	mu       sync.Mutex
	suffered map[string]int
	awaits   string // What is waited for now.
}

// mostSettling is how long it may take, beyond the time that is given, until all is at rest
// and looked at.
const mostSettling = 5 * time.Minute

// run tortures the plugin for a part of the time, has it come to rest, and looks at what is
// left. Operations and faults derive from the seed. When they meet, the machine decides.
func run(t *testing.T, seed uint64, all time.Duration) {
	mountns.Require(t)
	r := &torture{t: t, seed: seed, place: os.Getenv(placeVariable), began: time.Now(), suffered: map[string]int{}}
	r.findings.tell = func(text string) { r.say("FOUND %s", text) }
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
	r.bound(all + mostSettling)
	if r.link, err = netns.Fresh(); err != nil {
		t.Fatalf("have a network: %v", err)
	}
	_, err = os.Stat(filepath.Join(r.place, diskName, "lost+found"))
	r.hasDisk = err == nil
	r.build()
	// What follows the faults is to come to rest within the same time.
	r.torment(max(15*time.Second, all-max(30*time.Second, min(all/4, 2*time.Minute))))
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
	inOrder := false
	defer func() {
		if !inOrder {
			r.giveUp()
		}
		over()
		leave()
		pods.Wait()
		colleagues.Wait()
	}()
	kinds := slices.DeleteFunc(kinds(), func(k kind) bool { return k.lane == "disk" && !r.hasDisk })
	r.settles("all volumes to have had a pod", r.haveBegun)
	r.began = time.Now()
	r.suffer(schedule(of(r.seed, "faults"), kinds, long))
	time.Sleep(time.Until(r.began.Add(long)))
	r.say("the faults are over")
	over()
	colleagues.Wait()
	r.comeToRest()
	inOrder = true
}

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
