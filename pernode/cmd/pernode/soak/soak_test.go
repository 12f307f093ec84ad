//go:build soak

package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/leaks"
)

// The size of a round. Each volume has pods of its own, which come and go.
const (
	volumes       = 8
	podsPerVolume = 3
	shortestStorm = 5 * time.Second
	longestStorm  = 15 * time.Second
)

// TestSoak tortures the plugin for SOAK_TIME, which begins once it is built, from SOAK_SEED.
func TestSoak(t *testing.T) {
	seed, patience := settings(t)
	fmt.Printf("soak pernode: seed=%d time=%v\n", seed, patience)
	end := time.Now().Add(patience)
	if err := gate.AskKernel(os.Getenv(programVariable)); err != nil {
		t.Fatal(err)
	}
	s := newSoak(t, seed)
	if err := leaks.Adopt(); err != nil {
		t.Fatal(err)
	}
	s.install()
	// What a check takes, of a round with kills and of a calm one.
	checks := [2]time.Duration{time.Minute, 5 * time.Second}
	for {
		check := &checks[(s.rounds+1)%2]
		left := time.Until(end) - *check
		if s.rounds > 0 && left < shortestStorm {
			return
		}
		s.round(min(max(left/2, shortestStorm), longestStorm))
		*check = max(*check, s.checking)
		if t.Failed() {
			return
		}
	}
}

// verdict is the last thing that is said, when all is put away.
func (s *soak) verdict(t *testing.T) {
	verdict := "passed"
	if t.Failed() {
		verdict = "FAILED"
	}
	fmt.Printf("soak pernode: %s seed=%d time=%v rounds=%d operations=%d writes=%d kills=%d faults=%d deletions=%d grown=%dKiB%s\n",
		verdict, s.seed, time.Since(s.began).Round(time.Second), s.rounds, s.operations.Load(), s.writes.Load(),
		s.kills.Load(), s.faults, s.deletions.Load(), s.grown>>10, s.keep(t.Failed()))
}

func settings(t *testing.T) (seed uint64, patience time.Duration) {
	t.Helper()
	seed, patience = rand.Uint64(), time.Minute
	var err error
	if text := os.Getenv("SOAK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SOAK_SEED: %v", err)
		}
	}
	if text := os.Getenv("SOAK_TIME"); text != "" {
		if patience, err = time.ParseDuration(text); err != nil || patience <= 0 {
			t.Fatalf("SOAK_TIME %q is not a time such as 5m", text)
		}
	}
	return seed, patience
}

// round lets a storm loose and looks at what is left. In every second one the plugin is not
// killed: all volumes are deleted before and at its end, and the process must have no more
// then than it had.
func (s *soak) round(storm time.Duration) {
	s.rounds++
	isCalm := s.rounds%2 == 0
	var before leaks.Snapshot
	if isCalm {
		s.clear()
		before = s.settled()
	}
	over := make(chan struct{})
	var actors sync.WaitGroup
	actors.Go(func() { s.watchForTwo(over) })
	for _, v := range s.volumes {
		v.random = s.stream(uint64(s.rounds)<<16 | uint64(v.number) + 1)
		actors.Go(func() { v.live(over) })
	}
	s.weather(time.Now().Add(storm), !isCalm)
	close(over)
	actors.Wait()
	began := time.Now()
	s.check(isCalm)
	if isCalm && !s.T.Failed() {
		s.clear()
		s.wantNoMore(before)
	}
	s.checking = time.Since(began)
	s.say("round %d: %d operations, %d kills, checked in %v", s.rounds, s.operations.Load(), s.kills.Load(), s.checking.Round(time.Millisecond))
}

// stream is a source of randomness of its own, for what must not depend on anything else.
func (s *soak) stream(number uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, number)) }
