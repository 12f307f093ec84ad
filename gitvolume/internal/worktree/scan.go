package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/ignore"
	"liken.sh/gitvolume/internal/metadata"
)

// Request says what to look at, and what counts.
type Request struct {
	// Memory is the tree as it was committed last. That of a commit alone, see With, has
	// everything be looked at and read.
	Memory *Memory
	// Seen is what an earlier scan against the same Memory found and nobody committed
	// since. What it knows is not Found again, nor, with a Hasher, read again. nil when
	// there is none.
	Seen *Memory
	// Paths may have changed, and all below Subtrees: "." among those is a scan of
	// everything. What they name may be gone, or of any kind. What else a look at them
	// reveals is followed: a new directory, another .gitignore.
	Paths, Subtrees []string
	// Class is the class's list of ignore patterns.
	Class ignore.Patterns
	// MaxFileSize is the size in bytes of the largest file that is committed; 0 for any.
	MaxFileSize int64
	// Blobs takes what changed.
	Blobs Blobs
	// Fresh is what modes a fresh checkout has, with the volume's mount group if it has
	// one, and Root what its root is like: the metadata is what differs from them.
	Fresh metadata.Fresh
	Root  metadata.Seen
	// Own tells the driver's own unfinished files by their names, which are passed over: that
	// of the Intent, as long as one is stored. nil if there are none.
	Own func(name string) bool
}

// Result is what a scan found. All lists are sorted by path.
type Result struct {
	// Changes is what to do to the committed tree, for history's Edit.
	Changes []history.Change
	// Metadata has the entry of each path that is new or of which mode, owner, group or
	// kind changed, the zero Entry for one that needs none; so too for each path that is
	// gone. A directory counts as empty when nothing in it or below is committed, whatever
	// else it holds; ignored directories, and those git cannot hold, have no entry. If what
	// the Memory held was of a commit alone, without Stats, every path of the tree is here.
	Metadata metadata.Delta
	// Skipped is what is left out and was not in the Memory; see Memory.Skipped for all.
	Skipped []Skip
	// Waiting are files that changed while they were read, and directories that were
	// moved meanwhile: they are as they were in the Memory, and to be looked at again, as
	// Subtrees of another scan.
	Waiting []string
	// Found is where the disk is not as it was remembered, whether or not that is to be
	// committed: what events should have announced.
	Found []string
	// Memory is the tree as it is once the changes are committed. It is for the next scan
	// from then on; until they are durable, the one of the Request is. It is that one when
	// nothing is different.
	Memory *Memory
}

// bulk is how much has to be found before a Result is Bulky: below that, what it leaves is
// some megabytes.
const bulk = 10_000

// Bulky says that the scan found a great deal, as the first one of a tree does, and took
// several times the memory for that which the Memory needs. Go's collector gives that back
// only after minutes, and not all of it; so whoever is idle afterwards calls
// debug.FreeOSMemory, once, when the Result is no longer needed.
func (r *Result) Bulky() bool {
	return len(r.Changes)+len(r.Metadata)+len(r.Found)+len(r.Skipped) >= bulk
}

// Skip is a path that is left out, and why.
type Skip struct {
	Path   string
	Reason Reason
}

// attempts is how often a scan looks at a directory that is moved under its hands,
// before it leaves it for the next pass, and so often in a row a file may change while
// it is read before it is reported.
const attempts = 3

// Scan looks at the tree. The application may change it meanwhile: what is found at a
// path was there at some time during the scan. An error is one of the whole scan: ctx's,
// of the Blobs, ErrGone, or one of the process such as too many open files; a single
// file's is none.
func (t *Tree) Scan(ctx context.Context, r Request) (*Result, error) {
	sc, err := newScope(r.Paths, r.Subtrees)
	if err != nil {
		return nil, err
	}
	cursor, err := t.Cursor()
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	s := &scan{ctx: ctx, request: r, cursor: cursor, reader: reader{blobs: r.Blobs, check: history.CheckContent}}
	root, err := s.root(sc)
	if err == nil {
		err = s.rooted()
	}
	if err != nil {
		return nil, fmt.Errorf("scan the tree: %w", err)
	}
	return s.result(root), nil
}

// scan is one scan. It is used by one goroutine.
type scan struct {
	ctx     context.Context
	request Request
	cursor  *Cursor
	reader  reader
	findings
	// files and subs are stacks: each directory that is being looked at has what was
	// found in it so far on top of those of the directories above.
	files []file
	subs  []*folder
	// nameBuffer and lookBuffer serve one directory after the other, so that a scan makes
	// no garbage of the tree's size. They are free again when the next one is entered.
	nameBuffer []string
	lookBuffer []looked
}

// findings are what a Result is made of.
type findings struct {
	changes  []history.Change
	metadata []entryAt
	skipped  []Skip
	waiting  []string
	found    []string
}

type entryAt struct {
	path  string
	entry metadata.Entry
}

// mark is how far the findings had come at some time.
type mark struct{ changes, metadata, skipped, waiting, found, files, subs int }

func (s *scan) mark() mark {
	return mark{len(s.changes), len(s.metadata), len(s.skipped), len(s.waiting), len(s.found), len(s.files), len(s.subs)}
}

// rollback forgets what was found since the mark.
func (s *scan) rollback(m mark) {
	s.changes, s.metadata, s.skipped = s.changes[:m.changes], s.metadata[:m.metadata], s.skipped[:m.skipped]
	s.waiting, s.found = s.waiting[:m.waiting], s.found[:m.found]
	s.files, s.subs = s.files[:m.files], s.subs[:m.subs]
}

func (s *scan) change(c history.Change) { s.changes = append(s.changes, c) }

func (s *scan) record(path string, entry metadata.Entry) {
	// A path that no record holds stays without; it is nobody's but an attacker's.
	if len(path) <= metadata.MaxPath {
		s.metadata = append(s.metadata, entryAt{path, entry})
	}
}

// skip reports a path that is left out, unless it was for the same reason before.
func (s *scan) skip(path string, why, before Reason) {
	if why != before {
		s.skipped = append(s.skipped, Skip{path, why})
	}
}

// root scans the tree from its root.
func (s *scan) root(sc *scope) (*folder, error) {
	stat, err := s.cursor.Here().Self()
	if err != nil {
		return nil, fmt.Errorf("stat the root: %w", err)
	}
	p := &place{path: metadata.Root, old: s.request.Memory.top(), stat: directoryStat(stat)}
	if s.request.Seen != nil {
		p.seen = s.request.Seen.top()
	}
	p.above = s.request.Root
	for range attempts {
		m := s.mark()
		root, err := s.top(p, sc)
		if !errors.Is(err, errTorn) {
			return root, err
		}
		s.rollback(m)
		s.cursor.Forget()
		p.rules, p.left = 0, 0
	}
	// Its ignore file never rests. Without knowing what that says nothing is committed.
	s.waiting = append(s.waiting, metadata.Root)
	return p.old, nil
}

// rooted has an error when the root was removed: what is missing in it then was not
// deleted by the application.
func (s *scan) rooted() error {
	s.cursor.Forget()
	self, err := s.cursor.Here().Self()
	if err != nil {
		return fmt.Errorf("stat the root: %w", err)
	}
	if self.Links == 0 {
		return ErrGone
	}
	return nil
}

func (s *scan) top(p *place, sc *scope) (*folder, error) {
	own, err := s.rules(p)
	if err != nil {
		return nil, err
	}
	p.level = ignore.Root(s.request.Class, own)
	return s.directory(p, sc)
}

func (s *scan) result(root *folder) *Result {
	r := &Result{
		Changes: s.changes, Skipped: s.skipped, Waiting: s.waiting, Found: s.found,
		Metadata: make(metadata.Delta, len(s.metadata)), Memory: s.request.Memory,
	}
	if root != s.request.Memory.top() {
		r.Memory = &Memory{root: root}
	}
	for _, e := range s.metadata {
		r.Metadata[e.path] = e.entry
	}
	slices.SortStableFunc(r.Changes, func(a, b history.Change) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(r.Skipped, func(a, b Skip) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(r.Waiting)
	slices.Sort(r.Found)
	r.Found = slices.Compact(r.Found)
	return r
}
