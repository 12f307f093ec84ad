package metadata

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// record makes one of entries, as a writer does.
func record(t interface{ Fatal(...any) }, entries Delta) Record {
	r, err := Record{}.Apply(entries)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFormat(t *testing.T) {
	entries := Delta{
		".":                  {Kind: Directory, Mode: Set(0o700), Owner: Set(999), Group: Set(999)},
		"a":                  {Kind: File, Mode: Set(0o640)},
		"a/b":                {Kind: Empty},
		"a-b":                {Kind: Link, Owner: Set(0)},
		"setuid":             {Kind: File, Mode: Set(0o4755), Group: Set(1<<32 - 2)},
		"sticky":             {Kind: Empty, Mode: Set(0o3777)},
		"new\nline":          {Kind: File, Mode: Set(0)},
		"quote\" and \\":     {Kind: File, Mode: Set(0o600)},
		"not utf-8 \xff\xc3": {Kind: File, Mode: Set(0o600)},
		"grün\u2028\u0085":   {Kind: File, Mode: Set(0o600)},
		"-":                  {Kind: File, Mode: Set(0o600)},
		" ":                  {Kind: File, Mode: Set(0o600)},
		"tab\t\x7f":          {Kind: File, Mode: Set(0o600)},
	}
	want := strings.Join([]string{
		`git-csi-metadata 1`,
		`file 0600 - - " "`,
		`file 0600 - - "-"`,
		`dir 0700 999 999 "."`,
		`file 0640 - - "a"`,
		`link - 0 - "a-b"`,
		`empty - - - "a/b"`,
		"file 0600 - - \"grün\u2028\u0085\"",
		`file 0000 - - "new\x0aline"`,
		`file 0600 - - "not utf-8 \xff\xc3"`,
		`file 0600 - - "quote\" and \\"`,
		`file 4755 - 4294967294 "setuid"`,
		`empty 3777 - - "sticky"`,
		`file 0600 - - "tab\x09\x7f"`,
	}, "\n") + "\n"
	text := record(t, entries).Format()
	if string(text) != want {
		t.Errorf("the record is\n%s\nwant\n%s", text, want)
	}
	back, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if back.Len() != len(entries) {
		t.Errorf("%d entries came back of %d", back.Len(), len(entries))
	}
	for path, entry := range entries {
		if back.Entry(path) != entry {
			t.Errorf("%q came back as %+v, want %+v", path, back.Entry(path), entry)
		}
	}
	if !back.Entry("absent").IsZero() {
		t.Error("a path that was never recorded has an entry")
	}
}

func TestParseTakesWhatAPersonEdited(t *testing.T) {
	edited := "git-csi-metadata 1\nfile 0600 - - \"z\"\nfile 0640 1 2 \"\\x61\\x2Fb\""
	r, err := Parse([]byte(edited))
	if err != nil {
		t.Fatal(err)
	}
	want := "git-csi-metadata 1\nfile 0640 1 2 \"a/b\"\nfile 0600 - - \"z\"\n"
	if got := string(r.Format()); got != want {
		t.Errorf("it is written as %q, want %q", got, want)
	}
	if empty, err := Parse([]byte("git-csi-metadata 1\n")); err != nil || empty.Len() != 0 {
		t.Errorf("a record without entries is %v, %v", empty, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		want error
		says string
	}{
		"nothing":              {"", ErrBroken, "line 1"},
		"another file":         {"# README\n", ErrBroken, "line 1"},
		"version 0":            {"git-csi-metadata 0\n", ErrBroken, "line 1"},
		"a newer version":      {"git-csi-metadata 2\nwhatever\n", ErrVersion, "version 2"},
		"CRLF":                 {"git-csi-metadata 1\r\n", ErrBroken, "line 1"},
		"an empty line":        {"git-csi-metadata 1\n\n", ErrBroken, "line 2"},
		"conflict markers":     {"git-csi-metadata 1\n<<<<<<< ours\n", ErrBroken, "line 2"},
		"no such kind":         {line1("fifo 0600 - - \"a\""), ErrBroken, "line 2"},
		"no kind":              {line1(" 0600 - - \"a\""), ErrBroken, "line 2"},
		"no path":              {line1("file 0600 - -"), ErrBroken, "line 2"},
		"a short mode":         {line1("file 600 - - \"a\""), ErrBroken, "mode"},
		"a mode of five":       {line1("file 00600 - - \"a\""), ErrBroken, "mode"},
		"a mode not octal":     {line1("file 0680 - - \"a\""), ErrBroken, "mode"},
		"a link with a mode":   {line1("link 0777 - - \"a\""), ErrBroken, "link"},
		"an owner by name":     {line1("file - root - \"a\""), ErrBroken, "numeric id"},
		"an owner below 0":     {line1("file - -1 - \"a\""), ErrBroken, "numeric id"},
		"owner with zeros":     {line1("file - 007 - \"a\""), ErrBroken, "numeric id"},
		"the id of nobody":     {line1("file - - 4294967295 \"a\""), ErrBroken, "nobody"},
		"an id beyond 32 bits": {line1("file - - 4294967296 \"a\""), ErrBroken, "numeric id"},
		"nothing said":         {line1("file - - - \"a\""), ErrBroken, "says nothing"},
		"no quotes":            {line1("file 0600 - - a"), ErrBroken, "quotes"},
		"one quote":            {line1("file 0600 - - \""), ErrBroken, "quotes"},
		"a quote inside":       {line1("file 0600 - - \"a\"b\""), ErrBroken, "quote"},
		"an escaped end":       {line1("file 0600 - - \"a\\\""), ErrBroken, "escape"},
		"an unknown escape":    {line1("file 0600 - - \"\\n\""), ErrBroken, "escape"},
		"too deep":             {line1("empty - - - \"" + strings.Repeat("a/", MaxNames) + "a\""), ErrBroken, "2048 names"},
		"half an escape":       {line1("file 0600 - - \"\\x4\""), ErrBroken, "escape"},
		"a signed escape":      {line1("file 0600 - - \"\\x+4\""), ErrBroken, "escape"},
		"an empty path":        {line1("file 0600 - - \"\""), ErrBroken, "component"},
		"an absolute path":     {line1("file 0600 - - \"/etc/passwd\""), ErrBroken, "component"},
		"a path upwards":       {line1("empty - - - \"a/../../b\""), ErrBroken, "component"},
		"a path with a dot":    {line1("empty - - - \"a/./b\""), ErrBroken, "component"},
		"a slash at the end":   {line1("empty - - - \"a/\""), ErrBroken, "component"},
		"the root as a file":   {line1("file 0600 - - \".\""), ErrBroken, "component"},
		"a NUL":                {line1("file 0600 - - \"a\\x00b\""), ErrBroken, "NUL"},
		"a path twice":         {line1("file 0600 - - \"a\"\nfile 0640 - - \"a\""), ErrBroken, "two"},
		"a path too long":      {line1("file 0600 - - \"" + strings.Repeat("a", MaxPath+1) + "\""), ErrBroken, "bytes"},
		"the line that is bad": {line1("file 0600 - - \"a\"\nfile 0600 - - \"b\"\nbad"), ErrBroken, "line 4"},
		"a record too large":   {strings.Repeat("x", MaxSize+1), ErrBroken, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(row.text))
			if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("the error is %v, want one of %v that says %q", err, row.want, row.says)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func line1(text string) string { return header + "\n" + text + "\n" }

func FuzzParse(f *testing.F) {
	f.Add([]byte(line1("file 0640 1000 - \"a\\x0ab\"\nempty - - - \"d\"")))
	f.Add([]byte(line1("link - 0 0 \"\\\"\\\\\"")))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrBroken) && !errors.Is(err, ErrVersion) {
				t.Fatalf("the caller cannot tell what %v is", err)
			}
			return
		}
		first := r.Format()
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		if !again.Equal(r) || !bytes.Equal(again.Format(), first) {
			t.Fatalf("%q is not written in one way alone", text)
		}
	})
}

// entries draws an entry with every field drawn.
func entries() *rapid.Generator[Entry] {
	field := func(t *rapid.T, name string, limit uint32) Field {
		if rapid.Bool().Draw(t, name+" is set") {
			return Set(rapid.Uint32Range(0, limit).Draw(t, name))
		}
		return Field{}
	}
	return rapid.Custom(func(t *rapid.T) Entry {
		entry := Entry{Kind: rapid.SampledFrom([]Kind{File, Directory, Empty, Link}).Draw(t, "kind")}
		if entry.Kind != Link {
			entry.Mode = field(t, "mode", maxMode)
		}
		entry.Owner = field(t, "owner", noID-1)
		entry.Group = field(t, "group", noID-1)
		return entry
	})
}

// components are a path's, with what breaks formats.
func components() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "a-b", "a.b", "\n", "\"", "\\", "\\x41", "\xff", "\xc3", "é", "\u2028", " ", "-", "..."}),
		rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 6), func(name []byte) string {
			name = bytes.ReplaceAll(name, []byte{'/'}, []byte{'_'})
			if string(name) == "." || string(name) == ".." {
				return "dots"
			}
			return string(name)
		}),
	)
}

func paths() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(components(), 1, 3), func(of []string) string { return strings.Join(of, "/") })
}

func deltas() *rapid.Generator[Delta] {
	return rapid.Map(rapid.MapOfN(paths(), entries(), 0, 12), func(m map[string]Entry) Delta { return m })
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := record(t, deltas().Draw(t, "entries"))
		back, err := Parse(r.Format())
		if err != nil {
			t.Fatal(err)
		}
		if !back.Equal(r) {
			t.Fatalf("%q came back as %q", r.Format(), back.Format())
		}
	})
}
