package event

import "liken.sh/csicommon/quote"

// MaxMessage is the longest message of an Event, in bytes (the limit of
// events.k8s.io, which the API server applies to newer kinds of Events).
const MaxMessage = 1024

// Message makes s what an Event's message must be: valid UTF-8 of at most
// MaxMessage bytes, cut at a rune boundary, without bytes that are not printable.
// Message(Message(s)) is Message(s).
func Message(s string) string { return quote.Printable(s, MaxMessage) }
