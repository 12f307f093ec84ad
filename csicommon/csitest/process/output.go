package process

import (
	"bytes"
	"sync"
)

// Output collects what a process writes while others read it.
type Output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write adds data.
func (o *Output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(data)
}

// String is all that was written since the last Reset.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// Reset forgets what was written.
func (o *Output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buffer.Reset()
}
