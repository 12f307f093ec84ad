package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// Source reads what commits hold. *history.Repository does.
type Source interface {
	Diff(from, to object.ID) ([]history.Difference, error)
	// Find has the error history.ErrNotFound if the tree has nothing at path.
	Find(tree object.ID, path string) (history.Entry, error)
	Content(blob object.ID) ([]byte, error)
	Reader(blob object.ID) (content io.ReadCloser, size int64, err error)
}

// Mover brings a tree from one commit to another while the application uses it. What
// the commits do not differ in is not touched, and not looked at.
//
// A reader sees the file of the one commit or of the other under a name that both have,
// whatever kinds they are of, and never a part. What the application wrote is not
// replaced: what came out is looked at after each exchange, and put back if it is not
// what the commit before has. A file that the application holds open while it is
// replaced stays what it is for the application, and nobody sees what is written to it.
type Mover struct {
	Tree   *Tree
	Source Source
	// Memory is what is remembered of the tree as of the commit it is moved from. nil
	// will do: then the files that differ are read.
	Memory  *Memory
	Intents Intents
	// Vacated are directories that held nothing and that the commit after has no more, as
	// the metadata says, each after those in it. One that is as it is remembered, and holds
	// nothing still, is removed.
	Vacated []string
	// Fresh is the modes of new files; their owners and groups are those of the
	// directories they are in.
	Fresh metadata.Fresh
	// Label is the SELinux label of all that is written, empty for what the kernel gives
	// by itself.
	Label string
	// Room is asked now and then, as more and more is written, and has an error when there is
	// no room for more; nil: nobody is asked, and the disk's own end counts.
	Room func() error
}

// Moved is what became of a move. All lists are sorted.
type Moved struct {
	// Conflicts are paths that the commits differ in and of which the application has
	// made something else: neither what the commit before has nor the one after. If there
	// are any, nothing of the tree was changed, and nothing else here means anything.
	Conflicts []string
	// Late are such paths of which that came out when others were moved already. They
	// are as the application left them, on top of the commit after.
	Late []string
	// Refused are paths of the commit after that no tree can have.
	Refused []Skip
	// Written are the files, links and new directories that were put in place: those of
	// which the metadata is to be replayed.
	Written []string
	// Memory is what is remembered of the tree as of the commit after.
	Memory *Memory
}

// Move brings the tree to the tree `to` of a commit from the tree `from` of another, of
// which either may be zero. No Intent of before may be stored: Resume is for that. After an error the intent is still stored if something of
// the tree was changed; then Resume is to be called, until it has none.
func (m *Mover) Move(ctx context.Context, from, to object.ID) (*Moved, error) {
	mv, err := m.begin(ctx, newIntent(from, to))
	if err != nil {
		return nil, fmt.Errorf("move the tree: %w", err)
	}
	defer func() { mv.cursor.Close() }()
	moved, err := mv.move()
	if err != nil {
		return nil, fmt.Errorf("move the tree: %w", err)
	}
	return moved, nil
}

// Resume brings to its end a move that was interrupted: what is as the commit before has
// it, and what was unfinished, goes to the commit after. Everything else is the
// application's. There are no Conflicts but Late ones.
func (m *Mover) Resume(ctx context.Context, intent Intent) (*Moved, error) {
	mv, err := m.begin(ctx, intent)
	if err != nil {
		return nil, fmt.Errorf("resume moving the tree: %w", err)
	}
	defer func() { mv.cursor.Close() }()
	moved, err := mv.resume()
	if err != nil {
		return nil, fmt.Errorf("resume moving the tree: %w", err)
	}
	return moved, nil
}

// move is one move. It is used by one goroutine.
type move struct {
	*Mover
	ctx    context.Context
	intent Intent
	root   *spot
	cursor *Cursor
	writer writer
	moved  Moved
	edits  []Edit
	// touched are the directories of which entries were changed.
	touched map[string]bool
	// strayed tells that something unfinished went where the application moved it.
	strayed bool
	// before is called before the steps of a unit, for tests to be the application.
	before func(step string, path string)
}

// separate is up to how many files are made durable one by one. To make a whole file
// system durable costs more, unless there is a lot.
const separate = 64

func (m *Mover) begin(ctx context.Context, intent Intent) (*move, error) {
	differences, err := m.Source.Diff(intent.From, intent.To)
	if err != nil {
		return nil, err
	}
	return m.over(ctx, intent, differences)
}

// over is a move over these differences.
func (m *Mover) over(ctx context.Context, intent Intent, differences []history.Difference) (*move, error) {
	root, refused, err := newSpots(differences, m.Source)
	if err != nil {
		return nil, err
	}
	cursor, err := m.Tree.Cursor()
	if err != nil {
		return nil, err
	}
	return &move{
		Mover: m, ctx: ctx, intent: intent, root: root, cursor: cursor,
		writer:  writer{source: m.Source, fresh: m.Fresh, label: m.labelOf(cursor), room: m.Room, separately: separate},
		moved:   Moved{Refused: refused},
		touched: map[string]bool{}, before: func(string, string) {},
	}, nil
}

// labelOf is the label to give, if the file system carries labels: then the root has one.
func (m *Mover) labelOf(cursor *Cursor) string {
	var label [256]byte
	if m.Label == "" {
		return ""
	}
	_, err := unix.Fgetxattr(cursor.Here().Fd(), labelName, label[:])
	if err != nil && !errors.Is(err, unix.ERANGE) {
		return ""
	}
	return m.Label
}

func (mv *move) move() (*Moved, error) {
	c, err := mv.check()
	if err != nil {
		return nil, err
	}
	if len(c.conflicts) > 0 {
		slices.Sort(c.conflicts)
		return &Moved{Conflicts: c.conflicts, Refused: mv.moved.Refused, Memory: mv.Memory}, nil
	}
	if len(c.units) == 0 && len(c.emptied) == 0 && len(mv.Vacated) == 0 {
		mv.edits = c.edits
		return mv.done()
	}
	if err := mv.Intents.Store(mv.intent); err != nil {
		return nil, err
	}
	if err := mv.stage(c.units); err != nil {
		// Nothing was changed yet: a full disk does not leave a tree between two commits.
		if undo := mv.unstage(c.units); undo != nil {
			return nil, errors.Join(err, undo)
		}
		return nil, errors.Join(err, mv.Intents.Abandon(mv.intent))
	}
	return mv.finish(c)
}

// check compares the tree with the commits, from the root.
func (mv *move) check() (*check, error) {
	var err error
	for range attempts {
		c := &check{looker: mv.looker()}
		mv.cursor.Forget()
		if err = c.directory(".", mv.root); err == nil {
			return c, nil
		}
		if !errors.Is(err, ErrMoved) {
			break
		}
	}
	return nil, err
}

func (mv *move) looker() looker {
	return looker{ctx: mv.ctx, cursor: mv.cursor, source: mv.Source, memory: mv.Memory}
}

// finish puts what is staged in its place. Where the application was quicker, the tree
// is looked at once more.
func (mv *move) finish(c *check) (*Moved, error) {
	for round := 1; ; round++ {
		lost, err := mv.putAll(c.units)
		if err != nil {
			return nil, err
		}
		mv.edits = append(mv.edits, c.edits...)
		if len(lost) == 0 || round == attempts {
			mv.moved.Late = append(append(mv.moved.Late, c.conflicts...), lost...)
			break
		}
		if c, err = mv.check(); err != nil {
			return nil, err
		}
		if err := mv.stage(c.units); err != nil {
			return nil, err
		}
	}
	removed, err := mv.removeEmptied(c.emptied)
	if err != nil {
		return nil, err
	}
	vacated, err := mv.removeVacated()
	if err != nil {
		return nil, err
	}
	if mv.strayed {
		if err := mv.sweep((*sweep).clear); err != nil {
			return nil, err
		}
	}
	if err := mv.syncTouched(); err != nil {
		return nil, err
	}
	for _, path := range mv.moved.Late {
		if s := mv.root.find(path); s != nil {
			s.each(path, func(path string, s *spot) {
				mv.edits = append(mv.edits, Edit{path, Entry{Mode: s.to.Mode, Blob: s.to.ID}})
			})
		}
	}
	mv.edits = append(append(mv.edits, removed...), vacated...)
	return mv.done()
}

// done says that the tree holds the commit after, and gives what became of the move.
func (mv *move) done() (*Moved, error) {
	moved := mv.moved
	if mv.Memory == nil && mv.intent.From.IsZero() {
		// Nothing of a fresh tree is the application's, nor is its root.
		mv.cursor.Forget()
		self, err := mv.cursor.Here().Self()
		if err != nil {
			return nil, fmt.Errorf("stat the root: %w", err)
		}
		mv.edits = append(mv.edits, Edit{metadata.Root, Entry{Stat: directoryStat(self), Mode: object.Directory}})
	}
	moved.Memory = mv.Memory.With(append(toBe(mv.root), mv.edits...))
	slices.Sort(moved.Late)
	moved.Late = slices.Compact(moved.Late)
	slices.Sort(moved.Written)
	return &moved, mv.Intents.Done(mv.intent, len(moved.Late) > 0)
}
