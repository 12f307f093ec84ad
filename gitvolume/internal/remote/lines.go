package remote

import (
	"bytes"
	"fmt"
)

// lineReader hands on each line that is written to it, without its end. A line that is
// too long is an error, and so a server cannot have it kept.
type lineReader struct {
	longest int
	line    func([]byte) error
	rest    []byte
}

// Write takes a part of the output.
func (l *lineReader) Write(p []byte) (int, error) {
	for left := p; len(left) > 0; {
		end := bytes.IndexByte(left, '\n')
		if end < 0 {
			l.rest = append(l.rest, left...)
			left = nil
		} else {
			line := left[:end]
			if len(l.rest) > 0 {
				l.rest = append(l.rest, line...)
				line = l.rest
			}
			if len(line) > l.longest {
				return 0, l.tooLong()
			}
			if err := l.line(line); err != nil {
				return 0, err
			}
			l.rest, left = l.rest[:0], left[end+1:]
		}
		if len(l.rest) > l.longest {
			return 0, l.tooLong()
		}
	}
	return len(p), nil
}

func (l *lineReader) tooLong() error {
	return fmt.Errorf("a line has more than %d bytes", l.longest)
}
