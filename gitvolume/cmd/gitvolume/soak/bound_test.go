//go:build soak

package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The moments before the end of all, for who waits to say what for, and for the pods to go.
const (
	beforeEnd = 30 * time.Second
	forPods   = 30 * time.Second
)

// bound ends all of it after so long, with a verdict. Who waits for something gives up in
// time to say so. What hangs elsewhere ends with the process, and the namespaces with it.
func (r *torture) bound(long time.Duration) {
	r.end = time.Now().Add(long)
	r.alive, r.giveUp = context.WithDeadline(context.Background(), r.end.Add(-beforeEnd))
	r.t.Cleanup(r.giveUp)
	timer := time.AfterFunc(long, func() {
		r.findings.add("the time is over, and this is not: %s", r.waitsFor())
		all := make([]byte, 4<<20)
		all = all[:runtime.Stack(all, true)]
		_ = os.WriteFile(filepath.Join(r.place, "goroutines"), all, 0o600)
		texts, _ := r.findings.all()
		fmt.Println(strings.Join(texts, "\n")) // There is no end of the test to tell them.
		r.conclude(failed)
		if r.plugin != nil {
			r.plugin.kill()
		}
		os.Exit(1)
	})
	r.t.Cleanup(func() { timer.Stop() })
}

// waits notes what is waited for.
func (r *torture) waits(what string) {
	r.mu.Lock()
	r.awaits = what
	r.mu.Unlock()
	r.say("wait for %s", what)
}

func (r *torture) waitsFor() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.awaits
}

// settles waits for a condition, which says what is missing.
func (r *torture) settles(what string, condition func() (missing string)) {
	r.waits(what)
	for {
		missing := condition()
		if missing == "" {
			return
		}
		if time.Until(r.end) < beforeEnd+forPods {
			r.findings.add("waited in vain for %s: %s", what, missing)
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}
