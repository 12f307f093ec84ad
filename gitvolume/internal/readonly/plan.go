package readonly

import (
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// plan is what a round of the loop is about.
type plan struct {
	// asked are the volumes of each scope, and remotes as whom they are asked.
	asked   map[scope][]*Attachment
	remotes map[scope]Remote
	// unfinished are checkouts that a crash may have left half-way.
	unfinished []*checkout
	demanded   bool
}

// plan is what is due now. One demand, or one poll that is due, is reason to ask for all
// that would be polled: it costs the same.
func (w *follower) plan() plan {
	f := w.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	p := plan{asked: map[scope][]*Attachment{}, remotes: map[scope]Remote{}}
	now, every := time.Now(), w.every()
	mayDemand := !now.Before(w.pulled.Add(f.settings.DemandEvery))
	chosen := map[*Attachment]bool{}
	for a := range w.attachments {
		if a.checkout.finish {
			a.checkout.finish = false
			p.unfinished = append(p.unfinished, a.checkout)
		}
		v := w.views[a.scope]
		if v == nil {
			continue
		}
		if a.demanded && mayDemand {
			p.demanded = true
			choose(chosen, a)
		}
		if a.polls() && !now.Before(v.due(every)) {
			choose(chosen, a)
		}
	}
	if p.demanded {
		w.pulled = now
	}
	// Each of its scopes has to see what a checkout is to show.
	for a := range chosen {
		if v := w.views[a.scope]; v != nil {
			p.asked[a.scope] = append(p.asked[a.scope], a)
			p.remotes[a.scope] = v.remote
			v.urgent, a.demanded = false, false
		}
	}
	w.joinPolls(p, chosen)
	return p
}

// choose takes the volume and all that show its checkout.
func choose(chosen map[*Attachment]bool, a *Attachment) {
	for user := range a.checkout.users {
		chosen[user] = true
	}
	chosen[a] = true
}

// joinPolls adds what is polled and would be due later to what its scope is asked anyway.
func (w *follower) joinPolls(p plan, chosen map[*Attachment]bool) {
	for a := range w.attachments {
		if _, isChosen := chosen[a]; !isChosen && a.polls() && p.remotes[a.scope] != nil {
			p.asked[a.scope] = append(p.asked[a.scope], a)
		}
	}
}

// refs are what the volumes follow, each once.
func refs(of []*Attachment) []attributes.Ref {
	var all []attributes.Ref
	seen := map[attributes.Ref]bool{}
	for _, a := range of {
		if ref := a.attributes.Ref; !seen[ref] {
			seen[ref] = true
			all = append(all, ref)
		}
	}
	return all
}
