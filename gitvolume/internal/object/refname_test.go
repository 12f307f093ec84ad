package object

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckRefLength(t *testing.T) {
	long := func(parts ...string) string { return "refs/heads/" + strings.Join(parts, "/") }
	part := strings.Repeat("a", MaxRefPart)
	// A part of letters that are three bytes each of UTF-8, and so nine in the record.
	foreign := strings.Repeat("語", MaxRefPart/3)
	many := func(part string, count int) string { return strings.TrimSuffix(strings.Repeat(part+"/", count), "/") }
	for name, fits := range map[string]bool{
		"refs/heads/main":         true,
		long(part):                true,
		long(part + "a"):          false,
		long(part+"a", "b"):       false,
		long(many(part, 11)):      true,
		long(many(part, 12)):      false,
		long(many(foreign, 5)):    true,
		long(many(foreign, 6)):    false,
		long(many("/", MaxRef/2)): false,
	} {
		if err := CheckRefLength(name); (err == nil) != fits || err != nil && !errors.Is(err, ErrRefLength) {
			t.Errorf("%d bytes, %.40q: %v", len(name), name, err)
		}
	}
}

func TestEscapeRef(t *testing.T) {
	if got := EscapeRef("refs/heads/a.b-c_d%é"); got != "refs%2Fheads%2Fa.b-c_d%25%C3%A9" {
		t.Error(got)
	}
}
