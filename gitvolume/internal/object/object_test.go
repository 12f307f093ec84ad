package object

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const good = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	id, err := Parse(good)
	if err != nil || id.String() != good || id.IsZero() {
		t.Errorf("Parse(%q) = %v, %v", good, id, err)
	}
	for _, bad := range []string{"", "4b825dc", good + "00", strings.ToUpper(good), good[:39] + "g", " " + good[1:]} {
		if id, err := Parse(bad); err == nil || !id.IsZero() {
			t.Errorf("Parse(%q) = %v, %v, want an error", bad, id, err)
		}
	}
	if _, err := Parse(strings.Repeat("ab", 32)); !errors.Is(err, ErrSHA256) {
		t.Errorf("the error of a SHA-256 id is %v", err)
	}
}

func TestText(t *testing.T) {
	id, err := Parse("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []ID{id, {}} {
		text, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		read := id
		if err := read.UnmarshalText(text); err != nil || read != want {
			t.Errorf("%q is read as %s, %v", text, read, err)
		}
	}
	if read := id; read.UnmarshalText([]byte("main")) == nil || read != id {
		t.Errorf("what is no id is read as %s", read)
	}
}

func TestMode(t *testing.T) {
	if got := Directory.String(); got != "040000" {
		t.Errorf("a directory's mode is printed %q", got)
	}
	for mode, want := range map[Mode]bool{Regular: true, Executable: true, Symlink: false, Directory: false, Submodule: false} {
		if mode.IsFile() != want {
			t.Errorf("%s.IsFile() = %v", mode, !want)
		}
	}
}
