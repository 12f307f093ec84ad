// Package logtest is a log that a test can look at while others write to it.
//
// It must never drop a line: what is not there was not logged.
package logtest

import (
	"log/slog"
	"strings"
	"sync"
)

// Log keeps all that is written to it. The zero value is ready to use.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Logger logs to l as text, from level info up.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
