package worktree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"liken.sh/csicommon/durable"
	"liken.sh/gitvolume/internal/object"
)

// note is what a checkout holds.
type note struct {
	Commit, Tree object.ID
	// Next is the move that is under way, if there is one.
	Next *nextNote
}

type nextNote struct {
	Commit, Tree object.ID
	Token        string
}

// noteText is a note as it is written.
type noteText struct {
	Commit string        `json:"commit"`
	Tree   string        `json:"tree"`
	Next   *nextNoteText `json:"next,omitempty"`
}

type nextNoteText struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	Token  string `json:"token"`
}

// readNote gives the zero note where there is none.
func readNote(path string) (note, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, nil
	}
	if err != nil {
		return note{}, fmt.Errorf("read what the checkout holds: %w", err)
	}
	var text noteText
	if err := json.Unmarshal(content, &text); err != nil {
		return note{}, brokenNote(path, err)
	}
	var n note
	if n.Commit, n.Tree, err = parseTwo(text.Commit, text.Tree); err != nil {
		return note{}, brokenNote(path, err)
	}
	if text.Next != nil {
		n.Next = &nextNote{Token: text.Next.Token}
		if n.Next.Commit, n.Next.Tree, err = parseTwo(text.Next.Commit, text.Next.Tree); err != nil {
			return note{}, brokenNote(path, err)
		}
	}
	return n, nil
}

// brokenNote is the error of a note that says nothing: what the tree holds nobody knows then,
// as where there is no note.
func brokenNote(path string, why error) error {
	return fmt.Errorf("read what the checkout holds: %s: %w: %w", path, ErrChanged, why)
}

// parseTwo reads both ids of a pair.
func parseTwo(commit, tree string) (object.ID, object.ID, error) {
	a, err := object.Parse(commit)
	if err != nil {
		return a, object.ID{}, err // One is enough, and a message is one line.
	}
	b, err := object.Parse(tree)
	return a, b, err
}

// noteKeeper keeps the intent of a checkout's moves in its note.
type noteKeeper struct {
	path   string
	note   note
	commit object.ID // Of the move that comes.
}

// Store notes that the tree is on its way.
func (k *noteKeeper) Store(intent Intent) error {
	next := &nextNote{Commit: k.commit, Tree: intent.To, Token: intent.Token}
	return k.set(note{Commit: k.note.Commit, Tree: intent.From, Next: next})
}

// Done notes that the tree came where it was to be.
func (k *noteKeeper) Done(intent Intent, _ bool) error {
	return k.set(note{Commit: k.commit, Tree: intent.To})
}

// Abandon notes that the tree is as it was.
func (k *noteKeeper) Abandon(intent Intent) error {
	return k.set(note{Commit: k.note.Commit, Tree: intent.From})
}

// set writes the note.
func (k *noteKeeper) set(n note) error {
	text := noteText{Commit: n.Commit.String(), Tree: n.Tree.String()}
	if n.Next != nil {
		text.Next = &nextNoteText{Commit: n.Next.Commit.String(), Tree: n.Next.Tree.String(), Token: n.Next.Token}
	}
	content, err := json.Marshal(text)
	if err == nil {
		err = durable.Replace(k.path, append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("note what the checkout holds: %w", err)
	}
	k.note = n
	return nil
}
