package worktree

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// leaf is what becomes of an entry of p that is there and no directory.
func (s *scan) leaf(p *place, name string, seen descent.Stat, old slot) (slot, error) {
	now, before := StatOf(seen), old.file
	if before != nil && before.stat == now && s.settled(before, seen) {
		if p.ownerChanged() {
			s.record(join(p.path, name), s.request.Fresh.Entry(seenOf(now), seenOf(p.stat)))
		}
		return old, nil
	}
	path := join(p.path, name)
	if old.folder != nil && old.isBarred() {
		return s.hidden(p, name, now, Name, old), nil
	}
	if before == nil || before.mode == untracked {
		if s.isOwn(name) {
			return slot{}, nil
		}
		if p.level.Ignored(name, false).Ignored() {
			s.forget(path, old)
			return slot{}, nil
		}
	}
	s.findFile(p, name, path, now, before)
	if old.folder != nil {
		s.forget(path, slot{folder: old.folder})
	}
	if why := s.leftOut(name, path, seen); why != 0 {
		return s.left(p, path, now, why, file{name: name}, before), nil
	}
	return s.read(p, name, path, seen, before)
}

// settled tells of a file that looks as it did whether there is nothing more to ask.
func (s *scan) settled(before *file, seen descent.Stat) bool {
	switch {
	case before.mode == untracked || seen.Mount:
		return false
	case s.tooLarge(seen):
		// What was committed under a higher limit stays, and will not be read again.
		return before.left == 0 || before.left == Size
	}
	return before.left == 0 && !before.racy
}

func (s *scan) tooLarge(seen descent.Stat) bool {
	return s.request.MaxFileSize > 0 && seen.Size > s.request.MaxFileSize && StatOf(seen).isRegular()
}

// leftOut is why an entry is not read at all, 0 if it is.
func (s *scan) leftOut(name, path string, seen descent.Stat) Reason {
	switch stat := StatOf(seen); {
	case seen.Mount:
		return Mount
	case s.unfit(name, path, gitMode(stat)):
		return Name
	case !stat.isRegular() && !stat.isLink():
		return Kind
	case s.tooLarge(seen):
		return Size
	case stat.isRegular() && stat.Size > history.MostChecked && (history.IsModules(name) || history.IsAttributes(name)):
		return Content
	}
	return 0
}

// unfit tells whether git cannot hold the entry name, at path, of the directory where the
// cursor is. Paths are bounded because each level of a deep tree has its own: together
// they would take memory with the square of the depth.
func (s *scan) unfit(name, path string, mode object.Mode) bool {
	return s.cursor.Depth() >= maxDepth || len(path) > metadata.MaxPath || history.CheckKind(name, mode) != nil
}

func (s *scan) isOwn(name string) bool { return s.request.Own != nil && s.request.Own(name) }

// gitMode is what git makes of a file or link.
func gitMode(stat Stat) object.Mode {
	switch {
	case stat.isLink():
		return object.Symlink
	case stat.Mode&unix.S_IXUSR != 0:
		return object.Executable
	}
	return object.Regular
}

// left is what is remembered of a path that is left out. What is committed there stays,
// but if the path became what git has no kind for: then it was deleted.
func (s *scan) left(p *place, path string, now Stat, why Reason, next file, before *file) slot {
	next.stat, next.left = now, why
	if before != nil {
		if before.mode != untracked && why == Kind {
			s.forget(path, slot{file: before})
		} else {
			next.mode, next.blob = before.mode, before.blob
		}
	}
	s.skip(path, why, s.leftBefore(p, next.name, before))
	// What is mounted on a file says nothing about it.
	if next.mode != untracked && why != Mount {
		s.recordFile(p, path, now, before)
	}
	return slot{file: &next}
}

// hidden is what is remembered of a directory that cannot be entered, or an entry that
// cannot be looked at. What is committed there stays.
func (s *scan) hidden(p *place, name string, now Stat, why Reason, old slot) slot {
	path := join(p.path, name)
	if old.folder != nil {
		before := old.folder.left
		if last := p.seen.sub(name); last != nil {
			before = last.left
		}
		s.skip(path, why, before)
		if old.folder.left == why {
			return slot{folder: old.folder}
		}
		hidden := *old.folder
		hidden.left = why
		return slot{folder: &hidden}
	}
	s.skip(path, why, s.leftBefore(p, name, old.file))
	if old.file != nil {
		switch {
		case now.isDirectory() && why != Name:
			s.forget(path, slot{file: old.file})
		case old.file.mode != untracked:
			kept := *old.file
			kept.left = why
			if now.isDirectory() {
				kept.stat = now
			}
			return slot{file: &kept}
		}
	}
	return slot{file: &file{name: name, stat: now, left: why}}
}

// read is what becomes of a file or link whose content is needed.
func (s *scan) read(p *place, name, path string, seen descent.Stat, before *file) (slot, error) {
	now, start := StatOf(seen), time.Now()
	next := file{name: name, stat: now, mode: trackedAs(gitMode(now))}
	known := object.ID{}
	if before != nil {
		known = before.blob
	}
	id, err := s.content(p, name, seen, known)
	switch {
	case errors.Is(err, errTorn):
		return s.torn(p, name, path, before), nil
	case errors.Is(err, descent.ErrMount):
		return s.left(p, path, now, Mount, file{name: name}, before), nil
	case errors.Is(err, errUnreadable):
		return s.left(p, path, now, Unreadable, file{name: name}, before), nil
	case errors.Is(err, history.ErrContent):
		return s.left(p, path, now, Content, file{name: name}, before), nil
	case err != nil:
		return slot{}, err
	}
	next.blob, next.racy = id, now.Racy(start)
	if before == nil || before.mode != next.mode || before.blob != id {
		s.change(history.Change{Path: path, Mode: next.mode.mode(), Blob: id})
	}
	s.recordFile(p, path, now, before)
	return slot{file: &next}, nil
}

// content gives the blob of a file or link.
func (s *scan) content(p *place, name string, seen descent.Stat, known object.ID) (object.ID, error) {
	if err := s.ctx.Err(); err != nil {
		return object.ID{}, err
	}
	if _, hashes := s.request.Blobs.(Hasher); hashes {
		f := p.seen.file(name)
		if f != nil && f.mode != untracked && f.left == 0 && !f.racy && f.stat == StatOf(seen) {
			return f.blob, nil
		}
	}
	if StatOf(seen).isLink() {
		return s.reader.link(s.cursor.Here(), name, seen, known)
	}
	return s.reader.file(s.ctx, s.cursor.Here(), name, seen, known)
}

// torn is what is remembered of a file that changed while it was read: what is committed
// and that it has to be read.
func (s *scan) torn(p *place, name, path string, before *file) slot {
	if _, err := s.cursor.Here().Stat(name); descent.Vanished(err) {
		s.forget(path, slot{file: before})
		return slot{}
	}
	next := file{name: name, passes: 1}
	if before != nil {
		next.mode, next.blob = before.mode, before.blob
	}
	if last := s.lastSeen(p, name, before); last != nil && last.passes > 0 {
		next.passes = min(last.passes+1, attempts)
	}
	if next.passes < attempts {
		s.waiting = append(s.waiting, path)
		return slot{file: &next}
	}
	// It is read again when an event or a scan leads here, but waited for no longer.
	next.left = Unsettled
	s.skip(path, Unsettled, s.leftBefore(p, name, before))
	return slot{file: &next}
}

// recordFile records the metadata of a tracked file, if there is anything new.
func (s *scan) recordFile(p *place, path string, now Stat, before *file) {
	if before != nil && before.mode != untracked && before.stat.isKnown() && before.stat.sameMetadata(now) && !p.ownerChanged() {
		return
	}
	s.record(path, s.request.Fresh.Entry(seenOf(now), seenOf(p.stat)))
}

// forget makes what was tracked at the path, and below it, deleted.
func (s *scan) forget(path string, old slot) {
	if f := old.file; f != nil && f.mode != untracked {
		s.change(history.Change{Path: path})
		s.record(path, metadata.Entry{})
	}
	if old.folder == nil {
		return
	}
	s.record(path, metadata.Entry{})
	if !old.folder.module.IsZero() {
		s.change(history.Change{Path: path})
	}
	for i := range old.folder.files {
		f := &old.folder.files[i]
		s.forget(join(path, f.name), slot{file: f})
	}
	for _, sub := range old.folder.subs {
		s.forget(join(path, sub.name), slot{folder: sub})
	}
}
