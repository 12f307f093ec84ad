package remote

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	textquote "liken.sh/csicommon/quote"
)

const (
	// keptWords bounds what is kept of each end of what git and a server say, who may
	// never stop.
	keptWords = 4 << 10
	// shownWords bounds what of it is shown, in bytes before quoting: an Event has 1024.
	shownWords = 600
	// longestLine is where a line without an end is cut.
	longestLine = 1 << 10
)

// helperQuit begins git's complaint that the helper gives no credential. It has the paths of
// the session, which are others each time, and the session says itself why.
const helperQuit = "fatal: credential helper '"

// What git says of each ref that it leaves as it was, since the remote has not all of the
// ref's history. It ends well all the same.
const (
	shallowBegins = "warning: rejected "
	shallowEnds   = " because shallow roots are not allowed to be updated"
)

// The figures in what git and curl say of a connection that is not made, or is lost.
var (
	triedFor     = regexp.MustCompile(` after \d+ (?:ms|milliseconds)\b`)
	missingBytes = regexp.MustCompile(`\d+ (bytes (?:of body are still expected|remaining to read))`)
)

// words is what git prints for people. Lines of progress go to whoever follows it; of
// the others the first and the last are kept.
type words struct {
	alive    func()
	progress func(Progress)
	// redact takes the session's secrets out of a line.
	redact func(string) string

	mu   sync.Mutex
	line []byte
	long bool // The line went on.
	// shallow tells that git left a ref as it was.
	shallow bool
	first   []string
	last    []string
	size    struct{ first, last int }
}

// Write takes standard error of the run.
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive()
	for rest := p; len(rest) > 0; {
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			w.add(rest)
			break
		}
		w.add(rest[:end])
		w.finish()
		rest = rest[end+1:]
	}
	return len(p), nil
}

func (w *words) add(part []byte) {
	room := min(len(part), longestLine-len(w.line))
	w.line = append(w.line, part[:room]...)
	w.long = w.long || room < len(part)
}

func (w *words) finish() {
	raw := bytes.TrimRight(w.line, " \t")
	if w.long {
		// Of its last word there is only a part, in which a secret would not be found.
		raw = raw[:bytes.LastIndexByte(raw, ' ')+1]
	}
	w.line, w.long = w.line[:0], false
	// A server pads its lines with these, to wipe what a terminal showed there.
	raw = bytes.TrimSuffix(raw, []byte("\x1b[K"))
	if len(raw) == 0 {
		return
	}
	// First of all, because a server chooses the phase of its progress too.
	text := w.redact(string(raw))
	if p, found := parseProgress([]byte(text)); found {
		if w.progress != nil {
			w.progress(p)
		}
		return
	}
	if strings.HasPrefix(text, helperQuit) {
		return
	}
	w.shallow = w.shallow || strings.HasPrefix(text, shallowBegins) && strings.HasSuffix(text, shallowEnds)
	w.keep(withoutFigures(text))
}

// withoutFigures leaves out of a line of git's own how long curl tried and how many bytes
// were to come: these are others each time, and a message must be the same for the same
// outage. What a server says stays as it is.
func withoutFigures(line string) string {
	if !strings.HasPrefix(line, "fatal: ") && !strings.HasPrefix(line, "error: ") {
		return line
	}
	return missingBytes.ReplaceAllString(triedFor.ReplaceAllString(line, ""), "$1")
}

// isShallow tells that git left a ref as it was, once all was shown.
func (w *words) isShallow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shallow
}

// keep has the line among the first, or else among the last.
func (w *words) keep(line string) {
	if w.size.first+len(line) <= keptWords && len(w.last) == 0 {
		w.first = append(w.first, line)
		w.size.first += len(line)
		return
	}
	w.last = append(w.last, line)
	w.size.last += len(line)
	for w.size.last > keptWords {
		w.size.last -= len(w.last[0])
		w.last = w.last[1:]
	}
}

// shown is what may be told: the last of it is git's own verdict, the first is where a
// hook began to explain.
func (w *words) shown() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finish()
	lines := w.first
	if len(w.last) > 0 {
		lines = append(append(lines, "..."), w.last...)
	}
	return quote(strings.Join(lines, "\n"))
}

// quote makes one line of what an outsider said, which can hold nothing that a log or a
// terminal takes for its own. Empty stays empty.
func quote(text string) string { return textquote.Lines(text, shownWords) }
