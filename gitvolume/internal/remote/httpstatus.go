package remote

import (
	"bytes"
	"strconv"
	"time"
)

// longestHeader is where a line of curl's trace is cut.
const longestHeader = 512

// longestAfter bounds what a server may ask for.
const longestAfter = time.Hour

// httpStatus reads the trace that git has curl write: every header, of which only the
// status and Retry-After of the last final answer are kept. git itself gives the status
// in prose alone.
type httpStatus struct {
	link *link
	line []byte
	// tunnel tells that what is asked is a proxy, for a connection.
	tunnel bool
}

// Write takes a part of the trace. Only headers are a sign of life: the trace also tells
// of what does not move.
func (h *httpStatus) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		h.line = append(h.line, part[:min(len(part), longestHeader-len(h.line))]...)
		if end < 0 {
			break
		}
		h.read(h.line)
		h.line = h.line[:0]
		rest = rest[end+1:]
	}
	return len(p), nil
}

// read takes one line: "20:45:20.123 http.c:623   <= Recv header: HTTP/2 403". What a
// server sends may have any of these words further on in the line.
func (h *httpStatus) read(line []byte) {
	_, line, _ = bytes.Cut(line, []byte(" ")) // the time
	_, line, _ = bytes.Cut(line, []byte(" ")) // the place in git's code
	line = bytes.TrimLeft(line, " ")
	if header, found := bytes.CutPrefix(line, []byte("=> Send header: ")); found {
		h.link.alive()
		h.sent(header)
	}
	if header, found := bytes.CutPrefix(line, []byte("<= Recv header: ")); found {
		h.link.alive()
		h.received(header)
	}
}

// sent takes a header of a request, of which only the first line tells something.
func (h *httpStatus) sent(header []byte) {
	switch method, _, _ := bytes.Cut(header, []byte(" ")); string(method) {
	case "CONNECT":
		h.tunnel = true
		h.link.note(func(f *facts) { f.asking = false })
	case "GET", "POST":
		h.tunnel = false
		h.link.note(func(f *facts) { f.requested, f.asking, f.httpStatus, f.retryAfter = true, true, 0, 0 })
	}
}

func (h *httpStatus) received(header []byte) {
	if fields := bytes.Fields(header); bytes.HasPrefix(header, []byte("HTTP/")) && len(fields) > 1 {
		status, err := strconv.Atoi(string(fields[1]))
		switch {
		case err != nil || status < 200 || status > 599:
		case h.tunnel:
			// It is the proxy's, which says nothing of the remote.
			h.link.note(func(f *facts) { f.proxyStatus = status })
		default:
			h.link.note(func(f *facts) { f.httpStatus = status })
		}
		return
	}
	name, value, _ := bytes.Cut(header, []byte(":"))
	value = bytes.TrimSpace(value)
	switch string(bytes.ToLower(name)) {
	case "content-type":
		if bytes.HasPrefix(value, []byte("application/x-git-")) {
			h.link.note(func(f *facts) { f.speaksGit = true })
		}
	case "retry-after":
		// The other form, a date, needs the server's clock to agree with ours.
		if seconds, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			after := min(time.Duration(seconds)*time.Second, longestAfter)
			h.link.note(func(f *facts) { f.retryAfter = after })
		}
	}
}
