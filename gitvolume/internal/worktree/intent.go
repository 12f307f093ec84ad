package worktree

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

// Intent is a move that was begun and may not be finished. What a crash left of it is
// brought to its end by Mover.Resume.
type Intent struct {
	// From and To are trees, zero for the empty one.
	From, To object.ID
	// Token is in the names of all unfinished files of this move, and of no others.
	Token string
}

// Intents keeps the one Intent of a tree, and which commit the tree holds: what changes
// one of them changes the other in the same step. All is durable when a method returns.
type Intents interface {
	// Store keeps the intent. The tree is between From and To.
	Store(intent Intent) error
	// Done forgets the intent: the tree holds To, whether or not it was stored. late tells
	// that there are Late paths, which no later look can find: they are as if written on
	// top of To.
	Done(intent Intent, late bool) error
	// Abandon forgets the intent: the tree holds From.
	Abandon(intent Intent) error
}

// ownPrefix begins the names of unfinished files. It says to whom they belong, for
// somebody who lists the directory just then.
const ownPrefix = ".gitvolume-"

// newIntent has a token that no application can guess, so that no file of its own is
// ever taken for an unfinished one.
func newIntent(from, to object.ID) Intent {
	token := make([]byte, 8)
	_, _ = rand.Read(token) // It never fails.
	return Intent{From: from, To: to, Token: hex.EncodeToString(token)}
}

// Own tells the move's unfinished files by their names: what a Scan passes over.
func (i Intent) Own(name string) bool {
	return i.Token != "" && strings.HasPrefix(name, ownPrefix+i.Token+"-")
}

// The two states of an unfinished file. A partial one is of no worth yet. A ready
// one is complete, or is what came out when it was exchanged for what stood there: the
// application's, for all that is known after a crash.
const (
	partial = 'w'
	ready   = 'x'
)

// unfinished is the name beside the entry name, in the same directory, of its successor
// or predecessor. It fits also where name has the 255 bytes that a directory allows.
func (i Intent) unfinished(state byte, name string) string {
	sum := sha256.Sum256([]byte(name))
	return ownPrefix + i.Token + "-" + string(state) + hex.EncodeToString(sum[:16])
}

// keptName is what an unfinished file is called that turned out to be the application's:
// a name that no move takes for its own.
func keptName(unfinished string) string {
	return ownPrefix + "kept-" + strings.TrimPrefix(unfinished, ownPrefix)
}

// isPartial tells an unfinished file that is not ready.
func (i Intent) isPartial(name string) bool {
	return strings.HasPrefix(name, ownPrefix+i.Token+"-"+string(rune(partial)))
}
