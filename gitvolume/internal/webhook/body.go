package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// startLimit is how much of a body is in memory, in bytes. Most pushes are shorter. The rest
// of a longer one is summed up and looked through as it comes.
const startLimit = 64 << 10

func tooLargeAnswer() answer {
	return answer{tooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", bodyLimit)}
}

// body is that of a request. Read reads all of it, once.
type body struct {
	rest  io.Reader
	start []byte
	given int // of the start
	// isWhole tells that the start is all.
	isWhole bool
	// err is why it cannot be read to its end.
	err error
}

// begin reads the start, of a body of the length, -1 if nobody says.
func (b *body) begin(length int64) {
	if length < 0 || length > startLimit {
		length = startLimit
	}
	b.start = make([]byte, 0, length+1) // One byte more tells whether there is more.
	for len(b.start) < cap(b.start) && !b.isWhole && b.err == nil {
		n, err := b.rest.Read(b.start[len(b.start):cap(b.start)])
		b.start = b.start[:len(b.start)+n]
		b.isWhole = err == io.EOF
		if !b.isWhole {
			b.err = err
		}
	}
}

func (b *body) Read(p []byte) (int, error) {
	if b.given < len(b.start) {
		n := copy(p, b.start[b.given:])
		b.given += n
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	if b.isWhole {
		return 0, io.EOF
	}
	n, err := b.rest.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// problem is the answer to one that cannot be read, the same for all paths.
func (b *body) problem(to http.ResponseWriter) answer {
	if errors.As(b.err, new(*http.MaxBytesError)) {
		return tooLargeAnswer()
	}
	to.Header().Set("Connection", "close")
	return answer{tooSlow, http.StatusRequestTimeout, "the body did not arrive"}
}
