package remote

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/object"
)

func TestParseProgress(t *testing.T) {
	for line, want := range map[string]Progress{
		"Receiving objects:  45% (9/20), 1.20 MiB | 1.00 MiB/s": {Phase: "Receiving objects", Percent: 45},
		"remote: Compressing objects: 100% (3/3), done.":        {Phase: "Compressing objects", Percent: 100},
		"Enumerating objects: 20, done.":                        {Phase: "Enumerating objects"},
		"remote: Counting objects: 7":                           {Phase: "Counting objects"},
	} {
		if got, found := parseProgress([]byte(line)); !found || got != want {
			t.Errorf("%q is %+v, %t", line, got, found)
		}
	}
	for _, line := range []string{
		"", ":", "remote: ", "remote: GH006: Protected branch update failed", "fatal: 40% of it", "error: 45% (9/20)",
		"! [remote rejected] main -> main (pre-receive hook declined)", "To https://h/r", "Quota:  450% (9/2)",
		strings.Repeat("x", 41) + ": 1% (1/100)",
	} {
		if got, found := parseProgress([]byte(line)); found {
			t.Errorf("%q is taken for %+v", line, got)
		}
	}
}

func newWords() *words {
	return &words{alive: func() {}, redact: func(text string) string { return strings.ReplaceAll(text, "SECRET", "-") }}
}

func TestWords(t *testing.T) {
	for _, row := range []struct{ name, said, want string }{
		{"nothing", "", ""},
		{"blank lines", "\n \r\n", ""},
		{"a line without its end", "fatal: no", `"fatal: no"`},
		{"progress", "Receiving objects:   1% (1/100)\rReceiving objects: 100% (100/100), done.\nfatal: no\n", `"fatal: no"`},
		{"a terminal's commands", "remote: \x1b[2J\x07no   \x1b[K\n", `"remote: \x1b[2J\ano"`},
		{"no UTF-8", "caf\xe9\n", `"caf?"`},
		{"two lines", "remote: one\nremote: two\n", `"remote: one | remote: two"`},
		{"a helper that gives up", "remote: hello\nfatal: credential helper '!ask() { exec /tmp/x; }; ask' told us to quit\n", `"remote: hello"`},
		{"a secret", "it is SECRET\n", `"it is -"`},
		{"a secret where the line is cut", strings.Repeat("x ", longestLine/2-2) + "SECRET and more", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			// However it comes in pieces.
			for size := 1; size <= len(row.said)+1; size = size*3 + 1 {
				w := newWords()
				for rest := row.said; rest != ""; {
					n := min(size, len(rest))
					_, err := w.Write([]byte(rest[:n]))
					check(t, err)
					rest = rest[n:]
				}
				got := w.shown()
				if row.name == "a secret where the line is cut" {
					if strings.Contains(got, "SEC") {
						t.Errorf("%s", got)
					}
				} else if got != row.want {
					t.Errorf("in pieces of %d: %s, want %s", size, got, row.want)
				}
			}
		})
	}
}

// TestWordsWithoutEnd keeps the first and the last, in bounded memory.
func TestWordsWithoutEnd(t *testing.T) {
	w := newWords()
	_, _ = fmt.Fprintln(w, "the first")
	for i := range 100000 {
		_, _ = fmt.Fprintln(w, "line", i)
	}
	_, _ = w.Write(bytes.Repeat([]byte("y"), 1<<20))
	_, _ = fmt.Fprintln(w, "\nthe last")
	if len(w.line) > longestLine || w.size.first > keptWords || w.size.last > keptWords {
		t.Errorf("%d, %d and %d bytes are kept", len(w.line), w.size.first, w.size.last)
	}
	got := w.shown()
	if len(got) > 2*shownWords || !strings.HasPrefix(got, `"the first | `) || !strings.HasSuffix(got, ` | the last"`) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func FuzzWords(f *testing.F) {
	f.Add([]byte("remote: no\rReceiving objects:  45% (9/20)\nfatal: \xff\x00"))
	f.Fuzz(func(t *testing.T, said []byte) {
		w := newWords()
		_, err := w.Write(said)
		check(t, err)
		got := w.shown()
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\n\r") || len(got) > 10*shownWords {
			t.Errorf("%q is shown as %q", said, got)
		}
	})
}

func FuzzRefs(f *testing.F) {
	f.Add([]byte("ref: refs/heads/main\tHEAD\n" + someID + "\tHEAD\n" + someID + "\trefs/tags/v1\n" + someID + "\trefs/tags/v1^{}\n"))
	f.Fuzz(func(t *testing.T, listing []byte) {
		refs := &Refs{keep: func(string) bool { return true }, redact: strings.ToUpper, tips: map[string]tip{}}
		lines := &lineReader{longest: 100, line: refs.add}
		if _, err := lines.Write(listing); err != nil {
			return
		}
		if refs.Count > bytes.Count(listing, []byte("\n")) || len(refs.Branches) > examples {
			t.Errorf("%d refs of %q", refs.Count, listing)
		}
		_, _ = refs.Resolve("v1")
	})
}

func FuzzSOCKS(f *testing.F) {
	f.Add([]byte("\x05\x01\x02\x01\x03git\x02pw\x05\x01\x00\x03\x01h\x00\x50"))
	f.Fuzz(func(t *testing.T, request []byte) {
		host, port, err := acceptSOCKS(bytes.NewReader(request), &bytes.Buffer{}, "pw")
		if err == nil && (!bytes.Contains(request, []byte("\x02pw")) || port == "") {
			t.Errorf("%q connects to %q", request, host)
		}
	})
}

func FuzzHTTPStatus(f *testing.F) {
	f.Add([]byte("t h.c:1  => Send header: GET /\nt h.c:1  <= Recv header: HTTP/1.1 503 x\nt h.c:1  <= Recv header: Retry-After: 7\n"))
	f.Fuzz(func(t *testing.T, trace []byte) {
		l := newLink(nil)
		defer l.close()
		_, err := (&httpStatus{link: l}).Write(trace)
		check(t, err)
		if facts := l.learned(); facts.httpStatus != 0 && (facts.httpStatus < 200 || facts.httpStatus > 599) || facts.retryAfter > longestAfter {
			t.Errorf("%+v", facts)
		}
	})
}

// TestHTTPStatusOfAServersWords: what a server has in a header, or in where it redirects
// to, is no header of ours and no other answer.
func TestHTTPStatusOfAServersWords(t *testing.T) {
	const trace = "20:45:20.123456 http.c:623              => Send header: GET /r HTTP/1.1\n" +
		"20:45:20.123456 http.c:623              <= Recv header: HTTP/1.1 401 Unauthorized\n"
	for name, line := range map[string]string{
		"a request":         "<= Recv header: X: => Send header: GET / HTTP/1.1",
		"a proxy":           "<= Recv header: X: => Send header: CONNECT h:443 HTTP/1.1",
		"another answer":    "<= Recv header: X: <= Recv header: HTTP/1.1 200 OK",
		"of git's own type": "<= Recv header: X: <= Recv header: Content-Type: application/x-git-upload-pack-advertisement",
		"a redirect":        "== Info: Issue another request to this URL: 'https://h/<= Recv header: HTTP/1.1 200",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLink(nil)
			defer l.close()
			_, err := (&httpStatus{link: l}).Write([]byte(trace + "20:45:20.123456 http.c:623              " + line + "\n"))
			check(t, err)
			if f := l.learned(); f.httpStatus != 401 || !f.requested || !f.asking || f.speaksGit {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestLongLine(t *testing.T) {
	lines := &lineReader{longest: 10, line: func([]byte) error { return nil }}
	if _, err := lines.Write([]byte("0123456789\n0123456789\n")); err != nil {
		t.Errorf("lines of ten bytes: %v", err)
	}
	if _, err := lines.Write([]byte("01234567890")); err == nil {
		t.Error("a longer one is kept")
	}
}

func TestWhatIsNoListing(t *testing.T) {
	for line, want := range map[string]error{
		"":                                       errListing,
		"<html>":                                 errListing,
		strings.Repeat("a", 64) + "\trefs/heads": object.ErrSHA256,
	} {
		refs := &Refs{keep: func(string) bool { return true }, redact: strings.ToUpper, tips: map[string]tip{}}
		wantError(t, refs.add([]byte(line)), want)
	}
}

func TestNoProxy(t *testing.T) {
	for _, row := range []struct {
		host, except string
		want         bool
	}{
		{"a.example", "", false},
		{"a.example", "*", true},
		{"a.example", "a.example", true},
		{"A.Example.", "a.example", true},
		{"b.a.example", "a.example", true},
		{"b.a.example", ".a.example", true},
		{"a.example", ".a.example", true},
		{"ba.example", "a.example", false},
		{"a.example", "x, a.example,y", true},
		{"a.example", "x a.example", true},
		{"10.1.2.3", "10.0.0.0/8", true},
		{"11.1.2.3", "10.0.0.0/8", false},
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", ".3", false},
		{"::1", "[::1]", true},
		{"fd00::1", "fd00::/8", true},
	} {
		p := proxiesOf([]string{"HTTPS_PROXY=http://p", "NO_PROXY=" + row.except})
		if got := p.excepted(row.host); got != row.want {
			t.Errorf("%q with NO_PROXY=%q: %t", row.host, row.except, got)
		}
	}
	url, err := attributes.ParseURL("ssh://git@h/r")
	check(t, err)
	if got := proxiesOf([]string{"ALL_PROXY=http://p"}).proxy(url); got != "" {
		t.Errorf("ssh goes by the proxy %q", got)
	}
}
