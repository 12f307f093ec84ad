package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mark of any bytes counts some ends or none, and one more if it was left in work.
func FuzzMark(f *testing.F) {
	f.Add([]byte("1"))
	f.Add([]byte("0 0\n"))
	f.Add([]byte("1 3\n"))
	f.Add([]byte("1 -9223372036854775808"))
	f.Add([]byte("1 9223372036854775807"))
	f.Add(bytes.Repeat([]byte("1"), longestMark+1))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := t.TempDir()
		if err := os.WriteFile(filepath.Join(path, markFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		dir, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		ends, err := countEnds(dir)
		if (err != nil) != (len(content) > longestMark) {
			t.Errorf("%q: %v", content, err)
		}
		if ends < 0 || err != nil && ends != 0 {
			t.Errorf("%q counts %d ends", content, ends)
		}
	})
}

// What is remembered of a tree is as of two commits, or of none.
func FuzzMemoryLine(f *testing.F) {
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 40)
	f.Add([]byte(memoryWord + a + " " + b + "\nrest"))
	f.Add([]byte(memoryWord + strings.ToUpper(a) + " " + b + "\n"))
	f.Add([]byte(memoryWord + a + "\n" + b + "\n"))
	f.Add([]byte(memoryWord))
	f.Fuzz(func(t *testing.T, content []byte) {
		of, err := readMemoryLine(bytes.NewReader(content))
		switch {
		case err != nil && (!errors.Is(err, ErrNoMemory) || of != Remembered{}):
			t.Errorf("%q: %s, %v", content, of, err)
		case err == nil && !bytes.HasPrefix(content, []byte(memoryWord+of.Tip.String()+" "+of.Metadata.String()+"\n")):
			t.Errorf("%q is of %s", content, of)
		}
	})
}
