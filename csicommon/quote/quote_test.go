package quote_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"liken.sh/csicommon/quote"
)

func TestValue(t *testing.T) {
	for name, row := range map[string]struct{ in, want string }{
		"empty":               {"", `""`},
		"a newline":           {"a\nb", `"a\nb"`},
		"no UTF-8":            {"caf\xe9", `"caf\xe9"`},
		"254 bytes stay":      {strings.Repeat("a", 254), `"` + strings.Repeat("a", 254) + `"`},
		"255 bytes":           {strings.Repeat("a", 255), `"` + strings.Repeat("a", 254) + `" (cut)`},
		"a rune cut in two":   {strings.Repeat("a", 253) + "漢", `"` + strings.Repeat("a", 253) + `\xe6" (cut)`},
		"a terminal's escape": {"\x1b[31mred", `"\x1b[31mred"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quote.Value(row.in); got != row.want {
				t.Errorf("Value(%q) = %s, want %s", row.in, got, row.want)
			}
		})
	}
}

func TestWords(t *testing.T) {
	for name, row := range map[string]struct {
		in   string
		most int
		want string
	}{
		"short":                      {"protected branch", 50, `"protected branch"`},
		"its quotes and newlines":    {"say \"no\"\r\n", 50, `"say \"no\"\r\n"`},
		"a backslash":                {`a\b`, 50, `"a\\b"`},
		"just fits":                  {"abcdef", 8, `"abcdef"`},
		"one too long":               {"abcdefg", 8, `"abc"...`},
		"no escape is cut in two":    {"ab\nabcdef", 8, `"ab"...`},
		"no rune is cut in two":      {"ab漢abcdef", 8, `"ab"...`},
		"empty":                      {"", 5, `""`},
		"no room at all":             {"abc", 4, ""},
		"a megabyte of hostile text": {strings.Repeat("\xff", 1<<20), 20, `"\xff\xff\xff"...`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quote.Words(row.in, row.most); got != row.want {
				t.Errorf("Words(%q, %d) = %q, want %q", row.in, row.most, got, row.want)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	for name, row := range map[string]struct {
		in   string
		most int
		want string
	}{
		"quotes and backslashes stay": {`handle "a\\b"`, 50, `handle "a\\b"`},
		"newline and tab":             {"a\nb\tc", 50, `a\nb\tc`},
		"direction override":          {"a\u202eb", 50, `a\u202eb`},
		"a rune over the end":         {"abc漢", 5, "abc"},
		"an escape over the end":      {"abc\xff", 6, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quote.Printable(row.in, row.most); got != row.want {
				t.Errorf("Printable(%q, %d) = %q, want %q", row.in, row.most, got, row.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	for name, row := range map[string]struct {
		in   string
		most int
		want string
	}{
		"nothing":                     {"", 30, ""},
		"blanks alone":                {" \n\t\n", 30, ""},
		"one line":                    {"no\n", 30, `"no"`},
		"several, some of them empty": {"a\r\n\n  b\n", 30, `"a | b"`},
		"no UTF-8":                    {"caf\xe9", 30, `"caf?"`},
		"beginning and end are kept":  {strings.Repeat("a", 40) + strings.Repeat("b", 40), 30, `"` + strings.Repeat("a", 20) + " ... " + strings.Repeat("b", 10) + `"`},
		"no rune is cut in two":       {strings.Repeat("漢", 20), 30, `"漢漢漢漢漢漢 ... 漢漢漢"`},
		"hardly any room":             {strings.Repeat("漢", 20), 1, `" ... "`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quote.Lines(row.in, row.most); got != row.want {
				t.Errorf("Lines(%q, %d) = %s, want %s", row.in, row.most, got, row.want)
			}
		})
	}
}

// A shell reads back what was quoted for it, whatever it is.
func TestShell(t *testing.T) {
	words := []string{"", "a b", "it's", "''", `\`, "$(id)", "`id`", "-n", "a\nb", "*", "~", "\xff"}
	var script strings.Builder
	for _, word := range words {
		script.WriteString("printf '%s\\0' " + quote.Shell(word) + "\n")
	}
	out, err := exec.Command("sh", "-c", script.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), strings.Join(words, "\x00")+"\x00"; got != want {
		t.Errorf("the shell read %q, want %q", got, want)
	}
}

// What is made for people is bounded, valid and of one line, and what is not cut can be
// read back.
func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\n\"\\ a\xe6\xbc\xa2")))).Draw(t, "text"))
		most := rapid.IntRange(0, 60).Draw(t, "most")
		words, printable, lines := quote.Words(s, most), quote.Printable(s, most), quote.Lines(s, most)
		for _, got := range []string{words, printable, lines, quote.Value(s)} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) {
				t.Errorf("of %q: %q", s, got)
			}
		}
		if len(words) > most || len(printable) > most {
			t.Errorf("of %q in %d bytes: %q and %q", s, most, words, printable)
		}
		if again := quote.Printable(printable, most); again != printable {
			t.Errorf("Printable(%q) = %q", printable, again)
		}
		if words != "" && !strings.HasSuffix(words, `"...`) {
			if back, err := strconv.Unquote(words); err != nil || back != s {
				t.Errorf("Words(%q) = %s, which is read as %q (%v)", s, words, back, err)
			}
		}
	})
}
