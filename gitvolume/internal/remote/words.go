package remote

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
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

// words is what git prints for people. Lines of progress go to whoever follows it; of
// the others the first and the last are kept.
type words struct {
	alive    func()
	progress func(Progress)

	mu    sync.Mutex
	line  []byte
	first []byte
	last  []byte
	cut   bool
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
	w.line = append(w.line, part[:min(len(part), longestLine-len(w.line))]...)
}

func (w *words) finish() {
	line := bytes.TrimRight(w.line, " \t")
	w.line = w.line[:0]
	// A server pads its lines with these, to wipe what a terminal showed there.
	line = bytes.TrimSuffix(line, []byte("\x1b[K"))
	if len(line) == 0 {
		return
	}
	if p, found := parseProgress(line); found {
		if w.progress != nil {
			w.progress(p)
		}
		return
	}
	line = append(line, '\n')
	if len(w.first)+len(line) <= keptWords && !w.cut {
		w.first = append(w.first, line...)
		return
	}
	w.cut = true
	w.last = append(w.last, line...)
	if over := len(w.last) - keptWords; over > 0 {
		w.last = append(w.last[:0], w.last[over:]...)
	}
}

// shown is what may be told, without the session's secrets: the last of it is git's own
// verdict, the first is where a hook began to explain.
func (w *words) shown(session Session) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finish()
	text := string(w.first)
	if w.cut {
		text += "...\n" + string(w.last)
	}
	if redactor, ok := session.(Redactor); ok {
		text = redactor.Redact(text)
	}
	return quote(text)
}

// quote makes one line of what an outsider said, which can hold nothing that a log or a
// terminal takes for its own. Empty stays empty.
func quote(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	text = strings.ToValidUTF8(strings.Join(lines, " | "), "?")
	if text == "" {
		return ""
	}
	if len(text) > shownWords {
		head, tail := shownWords*2/3, len(text)-shownWords/3
		for !utf8.RuneStart(text[head]) {
			head--
		}
		for !utf8.RuneStart(text[tail]) {
			tail++
		}
		text = text[:head] + " ... " + text[tail:]
	}
	return strconv.Quote(text)
}
