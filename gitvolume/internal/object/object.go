// Package object names what a git repository holds: the id of an object, the mode of
// a tree's entry and how long a ref's name may be, as the packages that work on objects
// and those that move them over the wire both write them.
//
// It must never read a repository: whether an object exists is not its concern.
package object

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrSHA256 says that an id is of a repository with SHA-256 objects, which the
// driver does not serve.
var ErrSHA256 = errors.New("the repository uses SHA-256 object ids; only SHA-1 repositories are served")

// IDSize is the length of an id in bytes; its hexadecimal form is twice that.
const IDSize = 20

// ID is the SHA-1 id of an object. The zero ID names no object, as git itself
// writes "no such ref" in its protocols.
type ID [IDSize]byte

// Parse reads an id of 40 lower-case hexadecimal digits, as git prints them. The
// error of a SHA-256 id is ErrSHA256.
func Parse(text string) (ID, error) {
	var id ID
	decoded, err := hex.DecodeString(text)
	switch {
	case err != nil:
		return id, fmt.Errorf("%q is no object id: %w", text, err)
	case len(decoded) == 32:
		return id, fmt.Errorf("%q: %w", text, ErrSHA256)
	case len(decoded) != IDSize:
		return id, fmt.Errorf("%q is no object id: it has %d hexadecimal digits, want %d", text, len(text), 2*IDSize)
	}
	copy(id[:], decoded)
	if id.String() != text {
		return ID{}, fmt.Errorf("%q is no object id: its digits have to be lower case", text)
	}
	return id, nil
}

// String is the id as git prints it.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero tells whether the id names no object.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText writes the id as git prints it; the zero ID is the empty text.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	return hex.AppendEncode(nil, id[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	read, err := Parse(string(text))
	if err == nil {
		*id = read
	}
	return err
}

// Mode is the kind of a tree's entry, with git's own numbers.
type Mode uint32

// The kinds of entry that git writes. Older repositories hold others, such as
// 0100664, which are read as the nearest of these.
const (
	Directory  Mode = 0o040000
	Regular    Mode = 0o100644
	Executable Mode = 0o100755
	Symlink    Mode = 0o120000
	// Submodule is a commit of another repository, of which the driver shows an
	// empty directory.
	Submodule Mode = 0o160000
)

// String is the mode as git prints it.
func (m Mode) String() string { return fmt.Sprintf("%06o", uint32(m)) }

// IsFile tells whether the entry is a file with content of its own: executable or not.
func (m Mode) IsFile() bool { return m == Regular || m == Executable }
