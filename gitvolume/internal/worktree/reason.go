package worktree

import "fmt"

// Reason is why a path is left out of what is committed, or of what is looked at.
type Reason uint8

// The reasons. 0 is that of a path that is not left out.
const (
	// Size is a file above the policy's limit. If it is tracked, the last content below
	// the limit stays committed.
	Size Reason = iota + 1
	// Kind is a FIFO, a socket or a device.
	Kind
	// Name is one that git cannot hold, as .git (C28), or too deep below the root.
	Name
	// Unreadable is what the process may not read. If it is tracked it stays as it is.
	Unreadable
	// Unsettled is a file that changed while it was read, three passes in a row.
	Unsettled
	// Mount is a directory or file on which something is mounted. What is tracked there,
	// and hidden, stays as it is.
	Mount
	// Content is a file that servers which check refuse, and with it each later push, as a
	// bad .gitmodules (C28, C35); or one of such a name that is too large to be checked. If
	// it is tracked, the content that was committed last stays.
	Content
	// Rules is a directory of which the .gitignore cannot be read, or is too large, or is so
	// with those above it. Nothing new in it or below is committed until that is put right;
	// what is tracked goes on.
	Rules
)

// String says it for a person.
func (r Reason) String() string {
	switch r {
	case 0:
		return "not left out"
	case Size:
		return "larger than the class allows"
	case Kind:
		return "neither file, directory nor symbolic link"
	case Name:
		return "git cannot hold the name"
	case Unreadable:
		return "the driver may not read it"
	case Unsettled:
		return "it changes whenever it is read"
	case Mount:
		return "something is mounted on it"
	case Content:
		return "git servers refuse its content"
	case Rules:
		return "its ignore file is too large or cannot be read, so nothing new in it is committed"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}
