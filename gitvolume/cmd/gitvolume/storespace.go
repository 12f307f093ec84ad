package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"liken.sh/csicommon/usage"
)

// spacePatience is how long a scrape waits for the store's disk.
const spacePatience = time.Second

// storeSpace is what the file system of the store has, asked at each scrape. While its disk
// does not answer, one question waits for it and no scrape for longer than spacePatience.
type storeSpace struct {
	ask       func() (usage.Space, error) // It may hang.
	log       *slog.Logger
	questions usage.Questions

	mu        sync.Mutex
	last      usage.Space
	isKnown   bool
	isFailing bool // The last answer was an error.
}

// current is what the disk says now, else what it said last; known is false while it has
// said nothing.
func (s *storeSpace) current(ctx context.Context) (space usage.Space, known bool) {
	ctx, cancel := context.WithTimeout(ctx, spacePatience)
	defer cancel()
	// What is answered is kept, and an error told, where the answer arrives, so that one
	// which comes too late for this scrape counts for the next.
	_, _ = s.questions.Space(ctx, wholeStore, s.keep)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.isKnown
}

func (s *storeSpace) keep() (usage.Space, error) {
	space, err := s.ask()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if !s.isFailing { // Once for each fault, not for each scrape.
			s.log.Warn("cannot ask for the space of the store's disk, keeping the last value", "error", err)
		}
		s.isFailing = true
		return usage.Space{}, err
	}
	s.last, s.isKnown, s.isFailing = space, true, false
	return space, nil
}
