package credential

import (
	"fmt"
	"io"
	"log/slog"
)

// String says which kind of credential it is, and nothing else.
func (c Credential) String() string { return "credential(" + string(c.kind) + ")" }

// GoString is String, for %#v.
func (c Credential) GoString() string { return c.String() }

// Format is String, whatever the verb.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue is String, for slog.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String, for encoders: a credential is never written down.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
