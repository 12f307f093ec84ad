package webhook

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// heldLimit and heldBytes bound what is held of all Secrets together: how many
	// deliveries, and how large their bodies are.
	heldLimit = 256
	heldBytes = 4 << 20
	// verifyWithin is how long a Secret may take that deliveries are held for.
	verifyWithin = 10 * time.Second
	// verifyAgain is the longest time between two attempts to read it. The first is made
	// once the failure is not remembered any more.
	verifyAgain = 30 * time.Second
)

// held are deliveries whose Secret could not be read when they came. Who sent them was told
// what everybody is told; they are verified once the Secret can be read. The zero value is
// empty.
type held struct {
	mu           sync.Mutex
	count, bytes int
	bySecret     map[secretName]heldFor
}

// heldFor is what waits for one Secret.
type heldFor struct {
	some []unverified
	// isOver tells that there was more than can be held: it is not known what, and nothing
	// is held beside it.
	isOver bool
}

// unverified is what has to be known of a delivery to verify it, and to mark for it.
type unverified struct {
	push      push
	signature signature
	body      []byte // Empty if the signature is none of the body.
}

func (u unverified) isSigned(secret []byte) bool {
	sum := newSum(secret)
	sum.Write(u.body)
	return u.signature.isOf(secret, sum.Sum(nil))
}

// add holds a delivery, or that there was one if there is no room; isWhole false: its body is
// not known.
func (h *held) add(name secretName, u unverified, isWhole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	had := h.bySecret[name]
	if had.isOver {
		return
	}
	if h.bySecret == nil {
		h.bySecret = map[secretName]heldFor{}
	}
	if !isWhole || h.count == heldLimit || h.bytes+len(u.body) > heldBytes {
		h.free(had)
		h.bySecret[name] = heldFor{isOver: true}
		return
	}
	h.count, h.bytes = h.count+1, h.bytes+len(u.body)
	had.some = append(had.some, u)
	h.bySecret[name] = had
}

func (h *held) free(had heldFor) {
	h.count -= len(had.some)
	for _, u := range had.some {
		h.bytes -= len(u.body)
	}
}

// take gives what is held for a Secret, and holds it no longer.
func (h *held) take(name secretName) heldFor {
	h.mu.Lock()
	defer h.mu.Unlock()
	had := h.bySecret[name]
	h.free(had)
	delete(h.bySecret, name)
	return had
}

// names are the Secrets that something is held for.
func (h *held) names() []secretName {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []secretName
	for name := range h.bySecret {
		names = append(names, name)
	}
	return names
}

// hold keeps a delivery until its Secret can be read, false if it could mark nothing
// whoever signed it.
func (w *Webhook) hold(name secretName, signed signature, p push, b *body) bool {
	if !signed.isToken && !signed.needsBody() || len(w.targets.of(name, p)) == 0 {
		return false
	}
	u, isWhole := unverified{push: p, signature: signed}, true
	if signed.needsBody() {
		u.body, isWhole = slices.Clone(b.start), b.isWhole
	}
	w.held.add(name, u, isWhole)
	select {
	case w.toVerify <- struct{}{}:
	default:
	}
	return true
}

// keepVerifying verifies what is held whenever its Secret can be read, until ctx ends.
func (w *Webhook) keepVerifying(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return // The next process marks all.
		case <-w.toVerify:
		}
		wait := keptFailure
		for names := w.held.names(); len(names) > 0; names = w.held.names() {
			pause(ctx, wait)
			for _, name := range names {
				w.verifyHeld(ctx, name)
			}
			if ctx.Err() != nil {
				return
			}
			wait = min(2*wait, verifyAgain)
		}
	}
}

// verifyHeld verifies what is held for a Secret, if that can be read by now, and has what is
// signed be marked.
func (w *Webhook) verifyHeld(ctx context.Context, name secretName) {
	log := w.settings.Log.With("secret", name.String())
	if !w.targets.isNamed(name) {
		w.held.take(name) // It must not be read any more.
		return
	}
	ctx, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	secret, err := w.secrets.get(ctx, name)
	if isOutage(err) {
		log.Debug("the Secret of deliveries cannot be read, trying again", "error", err)
		return
	}
	had := w.held.take(name)
	if err != nil {
		log.Warn("deliveries that waited for their Secret are refused", "deliveries", len(had.some), "reason", err)
		return
	}
	var found []target
	signed := 0
	for _, u := range had.some {
		if u.isSigned(secret) {
			signed++
			found = append(found, w.targets.of(name, u.push)...)
		}
	}
	if had.isOver {
		found = w.targets.ofAll(name)
	}
	log.Info("deliveries that waited for their Secret are verified", "deliveries", len(had.some), "signed", signed, "too_many", had.isOver)
	if signed == 0 && !had.isOver {
		return
	}
	if w.catalogue.Unread() != nil {
		w.lose() // There may be volumes that are not known.
		return
	}
	w.backlog.add(found)
	w.wake()
}
