// Package logging makes a process's one logger from its flags and routes what
// libraries log (klog, and with it client-go) into it.
//
// It must never write anywhere but to the writer it is given.
package logging

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"k8s.io/klog/v2"
)

// ErrFlag is wrapped when a level or format is none of those offered.
var ErrFlag = errors.New("not a logging flag")

// New returns a logger for level "debug", "info", "warn" or "error" and format
// "text" or "json", and makes klog log through it.
func New(w io.Writer, level, format string) (*slog.Logger, error) {
	options, err := handlerOptions(level)
	if err != nil {
		return nil, err
	}
	var handler slog.Handler
	switch format {
	case "text":
		handler = slog.NewTextHandler(w, options)
	case "json":
		handler = slog.NewJSONHandler(w, options)
	default:
		return nil, fmt.Errorf("log format %q is neither text nor json: %w", format, ErrFlag)
	}
	log := slog.New(handler)
	klog.SetSlogLogger(log)
	return log, nil
}

func handlerOptions(level string) (*slog.HandlerOptions, error) {
	for _, known := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		var asked slog.Level
		if asked.UnmarshalText([]byte(level)) == nil && asked == known {
			return &slog.HandlerOptions{Level: known}, nil
		}
	}
	return nil, fmt.Errorf("log level %q is none of debug, info, warn, error: %w", level, ErrFlag)
}
