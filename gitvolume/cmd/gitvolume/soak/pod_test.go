//go:build soak

package soak

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/kubelet"
)

// seat is a volume that one pod after another has.
type seat struct {
	volume     kubelet.Volume
	repository *repository
	branch     string
	plugin     *plugin
	findings   *findings
	random     *rand.Rand
	pods       *atomic.Int64 // All that there ever were.
	alive      context.Context

	hadPod atomic.Bool // Ever.

	mu  sync.Mutex
	pod kubelet.Pod // That has it now.
	// calls counts the kubelet's, and failures those that were refused.
	calls, failures atomic.Int64
}

// of gives each part of a run its own random numbers, which derive from the seed.
func of(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// target is where the pod that has it sees it.
func (s *seat) target() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&kubelet.Kubelet{Root: s.plugin.KubeletDir}).Target(s.pod.UID, s.volume.PV)
}

// insist repeats a call as the kubelet does, until it succeeds or the run is at its end.
func (s *seat) insist(what string, do func(ctx context.Context, k *kubelet.Kubelet) error) bool {
	for began := time.Now(); ; {
		s.calls.Add(1)
		err := s.plugin.call(s.alive, do)
		if err == nil {
			return true
		}
		s.failures.Add(1)
		switch status.Code(err) {
		case codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.NotFound, codes.Unimplemented:
			s.findings.add("the %s of %s is refused: %v", what, s.volume.Handle, err)
		}
		select {
		case <-s.alive.Done():
			if errors.Is(s.alive.Err(), context.DeadlineExceeded) {
				s.findings.add("the %s of %s failed for %s; the last error: %v", what, s.volume.Handle, time.Since(began).Round(time.Second), err)
			}
			return false
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// publish gives it to another pod, which has it when that is true.
func (s *seat) publish() bool {
	n := s.pods.Add(1)
	pod := kubelet.Pod{UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Namespace: "default", Name: fmt.Sprintf("pod-%d", n)}
	s.mu.Lock()
	s.pod = pod
	s.mu.Unlock()
	return s.insist("publish", func(ctx context.Context, k *kubelet.Kubelet) error {
		_, err := k.Publish(ctx, s.volume, pod)
		return err
	})
}

// unpublish takes it from its pod.
func (s *seat) unpublish() bool {
	s.mu.Lock()
	pod := s.pod
	s.mu.Unlock()
	return s.insist("unpublish", func(ctx context.Context, k *kubelet.Kubelet) error { return k.Unpublish(ctx, s.volume, pod) })
}

// unstage is what comes when no other pod of the node has it.
func (s *seat) unstage() bool {
	return s.insist("unstage", func(ctx context.Context, k *kubelet.Kubelet) error { return k.Unstage(ctx, s.volume) })
}

// republish repeats the publish until ctx is over. It brings the credential, and is to
// succeed whenever somebody answers.
func (s *seat) republish(ctx context.Context, random *rand.Rand) {
	s.mu.Lock()
	pod := s.pod
	s.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second + time.Duration(random.IntN(2000))*time.Millisecond):
		}
		s.calls.Add(1)
		err := s.plugin.call(ctx, func(ctx context.Context, k *kubelet.Kubelet) error { return k.Republish(ctx, s.volume, pod) })
		if err != nil && !isInterrupted(err) {
			s.findings.add("a repeated publish of %s fails: %v", s.volume.Handle, err)
		}
	}
}

// live has pod after pod have the volume until ctx is over; the last one keeps it, with the
// kubelet repeating its publish until rest is over. use is what a pod does with it.
func (s *seat) live(ctx, rest context.Context, use func(ctx context.Context)) {
	for {
		if !s.publish() {
			return
		}
		s.hadPod.Store(true)
		published, away := context.WithCancel(rest)
		var repeats sync.WaitGroup
		random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
		repeats.Go(func() { s.republish(published, random) })
		life, end := context.WithTimeout(ctx, 5*time.Second+time.Duration(s.random.IntN(25_000))*time.Millisecond)
		use(life)
		end()
		if ctx.Err() != nil {
			<-rest.Done()
		}
		away()
		repeats.Wait()
		if !s.unpublish() || (rest.Err() != nil || s.random.IntN(3) > 0) && !s.unstage() || rest.Err() != nil {
			return
		}
	}
}
