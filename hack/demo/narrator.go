package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// narrator says what happens, for a person to read along, and compares it with
// what should.
type narrator struct {
	out   io.Writer
	dir   string // left out of what is said: its name is different each time
	steps int
	began time.Time
}

func newNarrator(out io.Writer, dir string) *narrator {
	return &narrator{out: out, dir: dir, began: time.Now()}
}

func (n *narrator) line(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), n.dir+"/", "")
	// A demo that cannot be read has nobody to tell.
	_, _ = fmt.Fprintln(n.out, text)
}

func (n *narrator) title(text string) { n.line("\n%s\n%s", text, strings.Repeat("=", len(text))) }

func (n *narrator) step(text string) {
	n.steps++
	n.line("\n%2d. %s", n.steps, text)
}

func (n *narrator) asked(format string, args ...any) {
	n.line("    asked  %s", fmt.Sprintf(format, args...))
}

func (n *narrator) got(format string, args ...any) {
	n.line("    got    %s", strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n           "))
}

func (n *narrator) end() {
	n.line("\n%d steps, each as it should be, in %.1f s.", n.steps, time.Since(n.began).Seconds())
}

// answered says what a call came back with, and is an error if that was not want
// with all of the words.
func (n *narrator) answered(err error, want codes.Code, words ...string) error {
	answer := status.Convert(err)
	if answer.Code() == codes.OK {
		n.got("OK")
	} else {
		n.got("%s: %s", answer.Code(), answer.Message())
	}
	if answer.Code() != want {
		return fmt.Errorf("the answer was %s (%s), it should have been %s", answer.Code(), answer.Message(), want)
	}
	return holds("the answer", answer.Message(), words...)
}

// holds is an error unless text has all of the words.
func holds(what, text string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("%s should hold %q:\n%s", what, word, text)
		}
	}
	return nil
}

// equal is an error unless both are the same.
func equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, it should be %v", what, got, want)
	}
	return nil
}
