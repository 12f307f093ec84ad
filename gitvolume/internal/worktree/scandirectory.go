package worktree

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// looked is what a look at one name gave.
type looked struct {
	stat descent.Stat
	err  error
}

// directory scans the directory p, where the cursor is, and leaves the cursor there. It
// gives what is to be remembered: the folder that was, if nothing is different.
func (s *scan) directory(p *place, sc *scope) (*folder, error) {
	if p.isNew() && !sc.all {
		sc = &scope{all: true}
	}
	names, err := s.names(p, sc)
	if err != nil {
		return nil, err
	}
	files, subs := len(s.files), len(s.subs)
	directories, err := s.entries(p, names)
	if err != nil {
		return nil, err
	}
	for _, d := range directories {
		became, err := s.descend(p, d, sc.of(d.name))
		if err != nil {
			return nil, err
		}
		s.keep(became)
	}
	after := s.folder(p, s.files[files:], s.subs[subs:])
	s.files, s.subs = s.files[:files], s.subs[:subs]
	return after, nil
}

// names are those to look at, sorted.
func (s *scan) names(p *place, sc *scope) ([]string, error) {
	if !sc.all && !p.ownerChanged() {
		return slices.Sorted(maps.Keys(sc.below)), s.ctx.Err()
	}
	names := s.nameBuffer[:0]
	dir := s.cursor.Here()
	for {
		name, err := dir.Next()
		if errors.Is(err, descent.ErrEnd) {
			break
		}
		if err != nil {
			return nil, readError("list", err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = p.old.unlisted(names)
	s.nameBuffer = names
	// A directory that changes while it is listed may give a name twice.
	return slices.Compact(names), s.ctx.Err()
}

// unlisted adds what is remembered and not among the sorted names. A listing may miss
// what is renamed meanwhile, as the file that an editor saves: nothing is gone before a
// look at its name says so.
func (f *folder) unlisted(names []string) []string {
	listed, at := len(names), 0
	add := func(name string) {
		for at < listed && names[at] < name {
			at++
		}
		if at == listed || names[at] != name {
			names = append(names, name)
		}
	}
	for i := range f.files {
		add(f.files[i].name)
	}
	at = 0
	for _, sub := range f.subs {
		add(sub.name)
	}
	if len(names) > listed {
		slices.Sort(names)
	}
	return names
}

// piece is how many names are looked at before what was seen is used: that is ten times as
// large as a name, and there may be millions of them.
const piece = 1024

// twoAt is from how many names on a second processor is worth its start.
const twoAt = 64

// looks looks at the names, in the directory where the cursor is.
func (s *scan) looks(names []string) ([]looked, error) {
	s.lookBuffer = slices.Grow(s.lookBuffer[:0], len(names))
	looks := s.lookBuffer[:len(names)]
	dir := s.cursor.Here()
	some := func(from, to int) {
		for i := from; i < to; i++ {
			looks[i].stat, looks[i].err = dir.Stat(names[i])
		}
	}
	half := len(names) / 2
	if len(names) < twoAt {
		half = 0
	}
	var other sync.WaitGroup
	if half > 0 {
		other.Go(func() { some(0, half) })
	}
	some(half, len(names))
	other.Wait()
	return looks, s.ctx.Err()
}

// entries looks after all names but for directories, which it gives. What is remembered
// of names that are not among them is kept.
func (s *scan) entries(p *place, names []string) ([]child, error) {
	var directories []child
	var looks []looked
	files, subs := p.old.files, p.old.subs
	pass := func(until func(name string) bool) {
		for len(files) > 0 && until(files[0].name) {
			s.keep(slot{file: &files[0]})
			files = files[1:]
		}
		for len(subs) > 0 && until(subs[0].name) {
			s.keep(slot{folder: subs[0]})
			subs = subs[1:]
		}
	}
	for i, name := range names {
		if i%piece == 0 {
			var err error
			if looks, err = s.looks(names[i:min(i+piece, len(names))]); err != nil {
				return nil, err
			}
		}
		pass(func(other string) bool { return other < name })
		var old slot
		if len(files) > 0 && files[0].name == name {
			old.file, files = &files[0], files[1:]
		}
		if len(subs) > 0 && subs[0].name == name {
			old.folder, subs = subs[0], subs[1:]
		}
		stat, err := looks[i%piece].stat, looks[i%piece].err
		if err == nil && stat.Directory {
			directories = append(directories, child{name, stat, old})
			continue
		}
		became, err := s.entry(p, name, stat, err, old)
		if err != nil {
			return nil, err
		}
		s.keep(became)
	}
	pass(func(string) bool { return true })
	return directories, nil
}

// entry is what becomes of a name that is no directory, if it is there at all.
func (s *scan) entry(p *place, name string, stat descent.Stat, failed error, old slot) (slot, error) {
	switch {
	case descent.Vanished(failed):
		return s.gone(p, old), nil
	case failed != nil:
		if err := readError("look at", failed); !errors.Is(err, errUnreadable) {
			return slot{}, err
		}
		return s.hidden(p, name, Stat{}, Unreadable, old), nil
	}
	return s.leaf(p, name, stat, old)
}

// keep remembers what was found at a name.
func (s *scan) keep(found slot) {
	if found.file != nil {
		s.files = append(s.files, *found.file)
	}
	if found.folder != nil {
		s.subs = append(s.subs, found.folder)
	}
}

// folder makes what is remembered of the directory p from what was found in it.
func (s *scan) folder(p *place, files []file, subs []*folder) *folder {
	byName := func(a, b file) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(files, byName) {
		slices.SortFunc(files, byName)
	}
	slices.SortFunc(subs, func(a, b *folder) int { return strings.Compare(a.name, b.name) })
	after := p.old
	if after.stat != p.stat || after.left != p.left || after.name != p.name || !slices.Equal(after.files, files) || !slices.Equal(after.subs, subs) {
		after = &folder{name: p.name, stat: p.stat, left: p.left, files: exact(files), subs: exact(subs)}
		after.compact().counted()
		if module := p.old.module; !module.IsZero() {
			s.overModule(p.path, after, module)
		}
	}
	s.recordFolder(p, after)
	return after
}

// overModule keeps the submodule of which the directory is the place, unless the
// application put something of its own there, which is not to be lost.
func (s *scan) overModule(path string, f *folder, module object.ID) {
	if f.count > 0 {
		s.change(history.Change{Path: path})
		return
	}
	f.module, f.count = module, 1
}

// recordFolder records the metadata of the directory p, if there is anything new.
func (s *scan) recordFolder(p *place, after *folder) {
	before := p.old
	same := before.stat.isKnown() && before.stat.sameMetadata(p.stat) && (before.count == 0) == (after.count == 0) && !p.aboveChanged
	if same && before.left == 0 {
		return
	}
	seen, fresh := seenOfFolder(p.stat, after.count), s.request.Fresh
	if p.name == "" {
		seen.Kind, fresh.Directory = seenOf(p.stat).Kind, s.request.Root.Mode
	}
	s.record(p.path, fresh.Entry(seen, p.above))
}
