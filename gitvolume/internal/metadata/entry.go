package metadata

import (
	"errors"
	"fmt"
)

// Kind is the kind of file an entry is about. An entry whose path has become another
// kind of file says nothing about that one.
type Kind uint8

// The kinds with an entry. The zero Kind is that of no entry at all.
const (
	File Kind = iota + 1
	// Directory is a directory that holds something.
	Directory
	// Empty is a directory that holds nothing, which git leaves out.
	Empty
	Link
)

// Field is a number that an entry may leave to the fresh checkout. The zero Field
// leaves it.
type Field struct {
	number uint32
	set    bool
}

// Set is a field that says number.
func Set(number uint32) Field { return Field{number, true} }

// Get is the number; ok is false when the entry leaves it to the fresh checkout.
func (f Field) Get() (number uint32, ok bool) { return f.number, f.set }

// Entry is what one path has that a fresh checkout would not give it. The zero Entry
// is that of a path about which there is nothing to say.
type Entry struct {
	Kind Kind
	// Mode is the permission bits with setuid, setgid and sticky: at most 07777.
	// A Link has none.
	Mode Field
	// Owner and Group are numeric ids, as the node that wrote them had them.
	Owner, Group Field
}

// IsZero tells whether the entry says nothing: neither a field nor that a directory
// without content exists.
func (e Entry) IsZero() bool {
	return e.Kind != Empty && e.Mode == Field{} && e.Owner == Field{} && e.Group == Field{}
}

// maxMode holds every permission bit and setuid, setgid and sticky.
const maxMode = 0o7777

// noID is the id that the kernel takes for "leave it as it is", and so nobody's.
const noID = 1<<32 - 1

func (e Entry) check() error {
	switch {
	case e.Kind < File || e.Kind > Link:
		return fmt.Errorf("there is no kind %d of entry", e.Kind)
	case e.IsZero():
		return errors.New("the entry says nothing")
	case e.Kind == Link && e.Mode.set:
		return errors.New("a link has no mode")
	case e.Mode.number > maxMode:
		return fmt.Errorf("%#o is no mode, the largest is %#o", e.Mode.number, maxMode)
	case e.Owner.number == noID, e.Group.number == noID:
		return fmt.Errorf("%d is nobody's id", uint32(noID))
	}
	return nil
}
