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

// What is wrapped when a level or a format is none of those offered.
var (
	ErrLevel  = errors.New("not one of the log levels")
	ErrFormat = errors.New("not one of the log formats")
)

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
		return nil, fmt.Errorf("%q: %w, which are text and json", format, ErrFormat)
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
	return nil, fmt.Errorf("%q: %w, which are debug, info, warn and error", level, ErrLevel)
}
