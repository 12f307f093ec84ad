package webhook

import (
	"log/slog"
	"sync"
	"time"
)

// tellEvery is how often a refusal is in the log at its default level: who is refused
// decides how often it happens.
const tellEvery = time.Minute

// refusals tells of refused requests.
type refusals struct {
	mu     sync.Mutex
	told   time.Time
	silent int
}

// tell says why a request is refused, and whether it is verified later. The path is quoted.
func (r *refusals) tell(log *slog.Logger, path string, reason error, isHeld bool) {
	r.mu.Lock()
	now := time.Now()
	isSilent := !r.told.IsZero() && now.Sub(r.told) < tellEvery
	others := r.silent
	if isSilent {
		r.silent++
	} else {
		r.told, r.silent = now, 0
	}
	r.mu.Unlock()
	if isSilent {
		log.Debug("a webhook's request is refused", "path", path, "reason", reason, "verified_later", isHeld)
		return
	}
	log.Warn("a webhook's request is refused", "path", path, "reason", reason, "verified_later", isHeld, "others", others)
}
