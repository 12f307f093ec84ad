package event_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"liken.sh/csicommon/event"
)

func TestMessage(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"plain":                        {"bind the copy: not a directory", "bind the copy: not a directory"},
		"a backslash and quotes stay":  {`handle "a\\b"`, `handle "a\\b"`},
		"UTF-8 stays":                  {"Größe 漢 😀", "Größe 漢 😀"},
		"newline and tab":              {"a\nb\tc", `a\nb\tc`},
		"terminal escape":              {"\x1b[31mred", `\x1b[31mred`},
		"zero byte":                    {"a\x00b", `a\x00b`},
		"Latin-1 byte":                 {"caf\xe9", `caf\xe9`},
		"lone continuation bytes":      {"\x80\xbf", `\x80\xbf`},
		"a rune cut by somebody else":  {"ab\xe6\xbc", `ab\xe6\xbc`},
		"direction override":           {"a\u202eb", `a\u202eb`},
		"line separator":               {"a\u2028b", `a\u2028b`},
		"replacement character itself": {"a\ufffdb", "a\ufffdb"},
		"1,024 bytes stay":             {strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		"1,025 bytes":                  {strings.Repeat("a", 1025), strings.Repeat("a", 1024)},
		"a rune over the end":          {strings.Repeat("a", 1022) + "漢", strings.Repeat("a", 1022)},
		"a rune up to the end":         {strings.Repeat("a", 1021) + "漢b", strings.Repeat("a", 1021) + "漢"},
		"an escape over the end":       {strings.Repeat("a", 1022) + "\xff", strings.Repeat("a", 1022)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := event.Message(test.in); got != test.want {
				t.Errorf("Message(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("caf\xe9\n")
	f.Add(strings.Repeat("漢", 400))
	f.Fuzz(func(t *testing.T, s string) {
		got := event.Message(s)
		if !utf8.ValidString(got) || len(got) > 1024 {
			t.Errorf("Message(%q) = %q (%d bytes)", s, got, len(got))
		}
		if again := event.Message(got); again != got {
			t.Errorf("Message(%q) = %q, and of that %q", s, got, again)
		}
	})
}
