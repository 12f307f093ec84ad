package worktree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// Replay says what to give to the files of a tree beyond what a commit holds.
type Replay struct {
	// Memory is what is remembered of the tree: what is tracked there is replayed. A file
	// whose mode, owner or group is another than is remembered is the application's.
	Memory *Memory
	// Record is that of the branch. A directory that is empty for git, and that it has an
	// entry of, is made if it is not there.
	Record metadata.Record
	// Fresh is the modes of what the record has no entry of, and Root what the root is by
	// itself.
	Fresh metadata.Fresh
	Root  metadata.Seen
}

// ReplayAll gives all of a fresh tree its modes, owners and groups, and gives what is to
// be remembered then. It may be repeated after an error.
func (t *Tree) ReplayAll(ctx context.Context, r Replay) (*Memory, error) {
	var empty []string
	for path, entry := range r.Record.All() {
		if entry.Kind == metadata.Empty {
			empty = append(empty, path)
		}
	}
	return t.replay(ctx, r, &named{all: true}, empty)
}

// ReplayPaths is ReplayAll for the paths alone, and for what is below a directory among
// them that gets another owner or group: what it holds follows it. Paths that are gone,
// or of another kind than what is tracked, do not matter.
func (t *Tree) ReplayPaths(ctx context.Context, r Replay, paths []string) (*Memory, error) {
	wanted := &named{}
	var empty []string
	for _, path := range paths {
		if err := wanted.add(path); err != nil {
			return nil, err
		}
		if r.Record.Entry(path).Kind == metadata.Empty {
			empty = append(empty, path)
		}
	}
	slices.Sort(empty)
	return t.replay(ctx, r, wanted, empty)
}

// named is a directory with the names in it that are to be replayed.
type named struct {
	self  bool
	all   bool // Everything in it, and it.
	below map[string]*named
}

func (n *named) add(path string) error {
	at, rest := n, path
	switch path {
	case metadata.Root:
		rest = ""
	case "":
		return fmt.Errorf("replay %q: %w", path, ErrName)
	}
	for rest != "" {
		name, more, _ := strings.Cut(rest, "/")
		if !isName(name) {
			return fmt.Errorf("replay %q: %w", path, ErrName)
		}
		if at.below[name] == nil {
			if at.below == nil {
				at.below = map[string]*named{}
			}
			at.below[name] = &named{}
		}
		at, rest = at.below[name], more
	}
	at.self = true
	return nil
}

// of is what is to be replayed of the entry name, nil if nothing is.
func (n *named) of(name string) *named {
	if n.all {
		return n
	}
	return n.below[name]
}

// replay is one replay. It is used by one goroutine.
type replay struct {
	Replay
	ctx    context.Context
	cursor *Cursor
	edits  []Edit
}

func (t *Tree) replay(ctx context.Context, request Replay, wanted *named, empty []string) (*Memory, error) {
	cursor, err := t.Cursor()
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	r := &replay{Replay: request, ctx: ctx, cursor: cursor}
	if err := r.top(wanted); err != nil {
		return nil, fmt.Errorf("replay the metadata: %w", err)
	}
	for _, path := range empty {
		if err := r.empty(path); err != nil {
			return nil, fmt.Errorf("replay the empty directory %q: %w", path, err)
		}
	}
	return request.Memory.With(r.edits), nil
}

func (r *replay) top(wanted *named) error {
	folder := r.Memory.top()
	if wanted.all || wanted.self {
		fresh := r.Fresh
		fresh.Directory = r.Root.Mode
		self, err := r.cursor.Here().Self()
		if err != nil {
			return fmt.Errorf("stat the root: %w", err)
		}
		want := fresh.Replayed(r.Record.Entry(metadata.Root), metadata.Directory, object.Directory, r.Root)
		changed, err := r.become(r.cursor.Here().Fd(), metadata.Root, self, folder.entry(), want)
		if err != nil {
			return err
		}
		if changed {
			wanted = &named{all: true}
		}
	}
	return r.directory(metadata.Root, folder, wanted)
}

// directory replays what is wanted of what is tracked in the directory at path, where
// the cursor is.
func (r *replay) directory(path string, f *folder, wanted *named) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	self, err := r.cursor.Here().Self()
	if err != nil {
		return fmt.Errorf("stat %q: %w", path, err)
	}
	above := seenOf(StatOf(self))
	for i := range f.files {
		file := &f.files[i]
		want := wanted.of(file.name)
		if want == nil || file.mode == untracked || file.left == Mount {
			continue
		}
		if _, err := r.entry(join(path, file.name), file.name, kindOf(file.mode.mode()), file.entry(), above); err != nil {
			return err
		}
	}
	for _, sub := range f.subs {
		want := wanted.of(sub.name)
		if want == nil || sub.left == Mount {
			continue
		}
		if err := r.sub(join(path, sub.name), sub, want, above); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) sub(path string, f *folder, wanted *named, above metadata.Seen) error {
	kind := metadata.Directory
	if f.count == 0 {
		kind = metadata.Empty
	}
	if wanted.all || wanted.self {
		changed, err := r.entry(path, f.name, kind, f.entry(), above)
		if err != nil {
			return err
		}
		if changed {
			wanted = &named{all: true}
		}
	}
	if !wanted.all && len(wanted.below) == 0 {
		return nil
	}
	err := r.cursor.Enter(f.name)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.directory(path, f, wanted); err != nil {
		return err
	}
	return r.cursor.Up()
}

// entry replays the entry name, which is at path, of the directory where the cursor is.
// It tells whether the owner or the group is another now.
func (r *replay) entry(path, name string, kind metadata.Kind, known Entry, above metadata.Seen) (bool, error) {
	mode := known.Mode
	want := r.Fresh.Replayed(r.Record.Entry(path), kind, mode, above)
	return r.apply(path, name, known, want)
}

// empty replays a directory that is empty for git.
func (r *replay) empty(path string) error {
	if history.CheckKind(path, object.Directory) != nil {
		return nil // Who wrote the record is not known.
	}
	at, made := metadata.Root, false
	for name := range strings.SplitSeq(path, "/") {
		dir, err := r.cursor.Go(at)
		if isGone(err) {
			return nil // It was there a moment ago.
		}
		if err != nil {
			return err
		}
		at = join(at, name)
		if r.Memory.find(at) != nil {
			continue // If it is gone, the application removed it.
		}
		if made, err = r.make(dir, at, name); err != nil {
			return err
		}
	}
	if made || r.Memory.find(path) != nil {
		return nil // It has what it needs, or was replayed with the others.
	}
	// It is there, and nobody looked at it yet.
	parent, name := split(path)
	dir, err := r.cursor.Go(parent)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	self, err := dir.Self()
	if err != nil {
		return fmt.Errorf("stat %q: %w", parent, err)
	}
	want := r.Fresh.Replayed(r.Record.Entry(path), metadata.Empty, object.Directory, seenOf(StatOf(self)))
	_, err = r.apply(path, name, Entry{Mode: object.Directory}, want)
	return err
}

// isGone tells of what leads to a path that there is no way, or none to be taken.
func isGone(err error) bool { return err != nil && (descent.Vanished(err) || isMount(err)) }
