package remote

import (
	"bytes"
	"net"
	"strings"
	"testing"
)

// Progress has a phase of plain words and a share of a hundred; a verdict of git or of a
// server, which begins otherwise, is never taken for it.
func FuzzProgress(f *testing.F) {
	for _, line := range []string{
		"Receiving objects:  45% (9/20), 1.20 MiB | 1.00 MiB/s", "remote: Compressing objects: 100% (3/3), done.", "remote: remote: X: 1",
		"fatal: 40% of it", "A_: 1%", "Z: 127% (", "X:18446744073709551615", "X: ,",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		p, found := parseProgress(line)
		if !found {
			return
		}
		if p.Percent < 0 || p.Percent > 100 || len(p.Phase) > 40 || strings.Trim(strings.ToLower(p.Phase), "abcdefghijklmnopqrstuvwxyz ") != "" {
			t.Errorf("%q is taken for %+v", line, p)
		}
		for _, verdict := range []string{"fatal: ", "error: ", "! [", "warning: "} {
			if bytes.HasPrefix(line, []byte(verdict)) {
				t.Errorf("%q is taken for %+v", line, p)
			}
		}
	})
}

// A push is rejected by the remote only where git says so in a line of its own, however it
// comes in pieces, and what is kept is bounded.
func FuzzVerdicts(f *testing.F) {
	f.Add([]byte("To https://h/r\n!\trefs/heads/a:refs/heads/a\t[remote rejected] (hook declined)\nDone\n"), 3)
	f.Add([]byte("!\ta:b\t[rejected] (fetch first)\n"), 1)
	f.Add([]byte(" \ta:b\t!\t[remote rejected]\n"), 7)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		size = 1 + int(uint(size)%100)
		v := &verdicts{}
		for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if n, err := v.Write(rest[:min(size, len(rest))]); err != nil || n == 0 {
				t.Fatal(n, err)
			}
		}
		if len(v.text) > longestVerdicts {
			t.Errorf("%d bytes are kept", len(v.text))
		}
		want := false
		for line := range bytes.SplitSeq(text[:min(len(text), longestVerdicts)], []byte("\n")) {
			fields := bytes.Split(line, []byte("\t"))
			want = want || len(fields) >= 3 && string(fields[0]) == "!" && bytes.HasPrefix(fields[2], []byte("[remote rejected]"))
		}
		if got := v.rejects(); got != want {
			t.Errorf("%q rejects: %t, want %t", text, got, want)
		}
	})
}

// A child's message is one line within its bound, and not a byte more is read: what follows
// is of the connection.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("dial h 22\nSSH-2.0-x\r\n"))
	f.Add([]byte("ssh 99999999999999999999\n"))
	f.Add(bytes.Repeat([]byte("x"), longestMessage+1))
	f.Fuzz(func(t *testing.T, sent []byte) {
		child, ours := net.Pipe()
		rest := make(chan []byte, 1)
		go func() {
			n, _ := child.Write(sent)
			_ = child.Close()
			rest <- sent[n:]
		}()
		line, err := readMessage(ours)
		_ = ours.Close()
		left := <-rest
		end := bytes.IndexByte(sent, '\n')
		if isLine := end >= 0 && end < longestMessage; (err == nil) != isLine {
			t.Fatalf("%q is read as %q, %v", sent, line, err)
		}
		if err == nil && (line != string(sent[:end]) || len(left) != len(sent)-end-1) {
			t.Errorf("%q is read as %q, and %q is left", sent, line, left)
		}
	})
}

// A list of refs is read line by line, whatever comes in which pieces; of a line without an
// end no more is kept than the bound.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 2)
	f.Add([]byte("0123456789\n01234567890\n"), 5)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		size = 1 + int(uint(size)%100)
		const longest = 10
		var got [][]byte
		lines := &lineReader{longest: longest, line: func(line []byte) error {
			got = append(got, bytes.Clone(line))
			return nil
		}}
		var err error
		for rest := text; len(rest) > 0 && err == nil; rest = rest[min(size, len(rest)):] {
			_, err = lines.Write(rest[:min(size, len(rest))])
		}
		if len(lines.rest) > longest+size {
			t.Errorf("%d bytes are kept", len(lines.rest))
		}
		want := bytes.Split(text, []byte("\n"))
		for i, line := range got {
			if !bytes.Equal(line, want[i]) || len(line) > longest {
				t.Errorf("%q is read as %q", text, got)
			}
		}
		if err == nil && len(got) != len(want)-1 {
			t.Errorf("%q is read as %q", text, got)
		}
	})
}
