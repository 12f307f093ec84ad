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
}

// Write takes a part of the trace. It is not a sign of life: the trace also tells of
// what does not move.
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

// read takes one line: "20:45:20.123 http.c:623   <= Recv header: HTTP/2 403".
func (h *httpStatus) read(line []byte) {
	_, header, found := bytes.Cut(line, []byte("<= Recv header: "))
	if !found {
		return
	}
	if fields := bytes.Fields(header); bytes.HasPrefix(header, []byte("HTTP/")) && len(fields) > 1 {
		status, err := strconv.Atoi(string(fields[1]))
		if err == nil && status >= 200 && status < 600 {
			h.link.note(func(f *facts) { f.httpStatus, f.retryAfter = status, 0 })
		}
		return
	}
	name, value, _ := bytes.Cut(header, []byte(":"))
	if !bytes.EqualFold(name, []byte("Retry-After")) {
		return
	}
	// The other form, a date, needs the server's clock to agree with ours.
	if seconds, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 31); err == nil {
		after := min(time.Duration(seconds)*time.Second, longestAfter)
		h.link.note(func(f *facts) { f.retryAfter = after })
	}
}
