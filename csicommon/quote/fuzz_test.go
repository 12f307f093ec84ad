package quote_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"liken.sh/csicommon/quote"
)

// Whatever somebody says, what is shown of it is one line of valid UTF-8 without anything
// that a terminal obeys, within its bound.
func FuzzShown(f *testing.F) {
	f.Add("caf\xe9\n", 10)
	f.Add("\x1b]0;owned\x07\u202e", 1)
	f.Add(strings.Repeat("漢", 400), 100)
	f.Add("a\r\nb\x85c", 4)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(0, most%2000)
		words, printable := quote.Words(s, most), quote.Printable(s, most)
		for name, got := range map[string]string{
			"Value": quote.Value(s), "Words": words, "Printable": printable, "Lines": quote.Lines(s, most),
		} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) {
				t.Errorf("%s of %q is %q", name, s, got)
			}
		}
		if len(words) > most || len(printable) > most || len(quote.Value(s)) > 300 {
			t.Errorf("of %q, %d bytes: %q, %q, %q", s, most, words, printable, quote.Value(s))
		}
		if again := quote.Printable(printable, most); again != printable {
			t.Errorf("%q, and of that %q", printable, again)
		}
	})
}

// A shell reads a quoted word as that word, and runs nothing of it.
func FuzzShell(f *testing.F) {
	f.Add("$(touch /tmp/x)'`;\n\\'\"")
	f.Add("'")
	f.Add("-n \xff")
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Contains(word, "\x00") || len(word) > 10_000 {
			return
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s. "+quote.Shell(word)).CombinedOutput()
		if err != nil || string(out) != word+"." {
			t.Errorf("a shell reads %q as %q, %v", word, out, err)
		}
	})
}
