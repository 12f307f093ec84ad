package metadata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxSize is the largest record that is read, in bytes: more than a million files
// need of which none has the mode of a fresh checkout.
const MaxSize = 128 << 20

var (
	// ErrBroken is wrapped by the error of a text that is no record.
	ErrBroken = errors.New("not a metadata record")
	// ErrVersion is wrapped by the error of a record in a newer form than this
	// package reads. Unlike a broken one it must not be replaced.
	ErrVersion = errors.New("the metadata record has a version this driver does not read")
)

// Parse reads a record. It takes entries in any order and needless escapes, as a
// person may have edited it, and refuses everything else that Format does not write.
// The error names the line.
func Parse(text []byte) (Record, error) {
	if len(text) > MaxSize {
		return Record{}, fmt.Errorf("the record has %d bytes, at most %d are read: %w", len(text), MaxSize, ErrBroken)
	}
	first, rest, _ := bytes.Cut(text, []byte{'\n'})
	if err := checkHeader(string(first)); err != nil {
		return Record{}, fmt.Errorf("read line 1: %w", err)
	}
	// A text of nothing but line breaks must not reserve memory for each of them.
	lines := make([]line, 0, min(bytes.Count(rest, []byte{'\n'}), 1<<16))
	for number := 2; len(rest) > 0; number++ {
		var one []byte
		one, rest, _ = bytes.Cut(rest, []byte{'\n'})
		l, err := parseLine(string(one))
		if err != nil {
			return Record{}, fmt.Errorf("read line %d: %w: %w", number, err, ErrBroken)
		}
		lines = append(lines, l)
	}
	order := func(a, b line) int { return strings.Compare(a.path, b.path) }
	if !slices.IsSortedFunc(lines, order) {
		slices.SortFunc(lines, order)
	}
	for i := 1; i < len(lines); i++ {
		if lines[i].path == lines[i-1].path {
			return Record{}, fmt.Errorf("read the entries: two are about %q: %w", lines[i].path, ErrBroken)
		}
	}
	return Record{lines}, nil
}

func checkHeader(first string) error {
	if first == header {
		return nil
	}
	name, _, _ := strings.Cut(header, " ")
	version, ok := strings.CutPrefix(first, name+" ")
	if number, err := strconv.ParseUint(version, 10, 32); ok && err == nil && number > 1 {
		return fmt.Errorf("version %d: %w", number, ErrVersion)
	}
	return fmt.Errorf("want %q: %w", header, ErrBroken)
}

func parseLine(text string) (line, error) {
	fields := strings.SplitN(text, " ", 5)
	if len(fields) != 5 {
		return line{}, errors.New("want kind, mode, owner, group and path")
	}
	names := kindNames()
	kind := Kind(max(0, slices.Index(names[:], fields[0])))
	if kind == 0 {
		return line{}, fmt.Errorf("%.20q is no kind of entry", fields[0])
	}
	mode, modeErr := parseMode(fields[1])
	owner, ownerErr := parseID(fields[2])
	group, groupErr := parseID(fields[3])
	path, pathErr := unquote(fields[4])
	if err := cmp.Or(modeErr, ownerErr, groupErr, pathErr); err != nil {
		return line{}, err
	}
	l := line{path, Entry{Kind: kind, Mode: mode, Owner: owner, Group: group}}
	return l, cmp.Or(l.entry.check(), checkPath(path, kind))
}

func parseMode(text string) (Field, error) {
	if text == "-" {
		return Field{}, nil
	}
	number, err := strconv.ParseUint(text, 8, 32)
	if err != nil || len(text) != 4 {
		return Field{}, fmt.Errorf("%.20q is no mode of four octal digits", text)
	}
	return Set(uint32(number)), nil
}

func parseID(text string) (Field, error) {
	if text == "-" {
		return Field{}, nil
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil || strconv.FormatUint(number, 10) != text {
		return Field{}, fmt.Errorf("%.20q is no numeric id", text)
	}
	return Set(uint32(number)), nil
}

// unquote is the inverse of appendQuoted, and takes any byte as \xNN.
func unquote(text string) (string, error) {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return "", errors.New("the path is not between quotes")
	}
	text = text[1 : len(text)-1]
	if !strings.ContainsAny(text, "\"\\") {
		return text, nil
	}
	path := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return "", errors.New("the path holds a quote that is not escaped")
		case text[i] != '\\':
			path = append(path, text[i])
		case strings.HasPrefix(text[i+1:], `\`), strings.HasPrefix(text[i+1:], `"`):
			path = append(path, text[i+1])
			i++
		case strings.HasPrefix(text[i+1:], "x") && i+3 < len(text):
			number, err := strconv.ParseUint(text[i+2:i+4], 16, 8)
			if err != nil {
				return "", fmt.Errorf("%q is no escape", text[i:i+4])
			}
			path = append(path, byte(number))
			i += 3
		default:
			return "", fmt.Errorf("%q is no escape", text[i:min(i+2, len(text))])
		}
	}
	return string(path), nil
}
