//go:build soak

package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The verdicts.
const (
	passed = "passed"
	failed = "FAILED"
)

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
	r.conclude(verdict)
}

// conclude writes the line that is said last, when all is put away.
func (r *torture) conclude(verdict string) {
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
	r.mu.Lock()
	for name, count := range r.suffered {
		faults = append(faults, fmt.Sprintf("%s:%d", name, count))
	}
	r.mu.Unlock()
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
