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

// What is remembered of a tree is as of a commit, or of none.
func FuzzMemoryLine(f *testing.F) {
	f.Add([]byte(memoryWord + strings.Repeat("a", 40) + "\nrest"))
	f.Add([]byte(memoryWord + strings.Repeat("A", 40) + "\n"))
	f.Add([]byte(memoryWord))
	f.Fuzz(func(t *testing.T, content []byte) {
		commit, err := readMemoryLine(bytes.NewReader(content))
		switch {
		case err != nil && (!errors.Is(err, ErrNoMemory) || !commit.IsZero()):
			t.Errorf("%q: %s, %v", content, commit, err)
		case err == nil && !bytes.HasPrefix(content, []byte(memoryWord+commit.String()+"\n")):
			t.Errorf("%q is of %s", content, commit)
		}
	})
}
