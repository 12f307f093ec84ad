package report

import (
	"io"
	"sync"
	"time"

	"liken.sh/csicommon/event"
)

// Printer is a Recorder for a person who looks on: a line for each Event. A writer that
// fails loses lines, which nothing else is to suffer from.
type Printer struct {
	mu  sync.Mutex
	out io.Writer
}

// NewPrinter makes a Printer.
func NewPrinter(out io.Writer) *Printer { return &Printer{out: out} }

// Post prints when it was, what happened and to what, in words; whom it is about, the
// person knows.
func (p *Printer) Post(_ event.Object, _ event.Type, reason, message string) {
	p.Print(words(reason), event.Message(message))
}

// Wrong prints a fault that makes no Event.
func (p *Printer) Wrong(message string) { p.Print("wrong", event.Message(message)) }

// Print prints a line of the same form about something else: what, in a word, and more.
func (p *Printer) Print(what, more string) {
	line := time.Now().Format(time.TimeOnly) + " " + what + ": " + more + "\n"
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.out, line)
}

// words are the reason of an Event as one would say it.
func words(reason string) string {
	switch reason {
	case string(Armed):
		return "armed"
	case string(Unarmed):
		return "not armed"
	case string(Pushed):
		return "pushed"
	case string(Rebased):
		return "rebased"
	case string(Healed):
		return "healed"
	case string(NoPublishSecret):
		return "no publish secret"
	case reasonRefused:
		return "refused"
	case natureOf(pathsPending).event:
		return "pending"
	case reasonPushFailed:
		return "not pushed"
	case natureOf(fileSkipped).event:
		return "left out"
	case natureOf(Diverged).event:
		return "diverged"
	case natureOf(UpstreamMoved).event:
		return "upstream moved"
	case natureOf(RefDeleted).event:
		return "ref deleted"
	case natureOf(Stale).event:
		return "stale"
	case natureOf(FetchFailed).event:
		return "not fetched"
	case natureOf(WatchDegraded).event:
		return "watch degraded"
	}
	return reason
}
