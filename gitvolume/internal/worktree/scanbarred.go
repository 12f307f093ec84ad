package worktree

import (
	"slices"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// isBarred tells whether an entry of that name and kind is barred from trees: what
// upstream committed there is never written (see fits), so its absence is no deletion by
// the application, and what stands there instead is not committed.
func isBarred(name string, mode object.Mode) bool {
	return len(name) > maxName || history.CheckKind(name, mode) != nil
}

// isBarred tells whether something is committed at a name that is barred to all kinds.
func (s slot) isBarred() bool {
	switch {
	case s.file != nil:
		return s.file.mode != untracked && isBarred(s.file.name, object.Regular)
	case s.folder != nil:
		return s.folder.count > 0 && isBarred(s.folder.name, object.Regular)
	}
	return false
}

// barred is the file as it is remembered when the disk does not have it: nil, but for one
// that is committed and barred.
func (f *file) barred() *file {
	if f.mode == untracked || !isBarred(f.name, f.mode.mode()) {
		return nil
	}
	if rest := (file{name: f.name, blob: f.blob, mode: f.mode}); rest != *f {
		return &rest
	}
	return f
}

// barred is the part of a directory that is remembered when the disk does not have it:
// what is barred in it or below, nil if nothing is.
func (f *folder) barred() *folder {
	if f.count == 0 {
		return nil
	}
	if isBarred(f.name, object.Directory) {
		if f.stat == (Stat{}) && f.left == 0 {
			return f
		}
		rest := *f
		rest.stat, rest.left = Stat{}, 0
		return &rest
	}
	rest := &folder{name: f.name}
	for i := range f.files {
		if file := f.files[i].barred(); file != nil {
			rest.files = append(rest.files, *file)
		}
	}
	for _, sub := range f.subs {
		if sub = sub.barred(); sub != nil {
			rest.subs = append(rest.subs, sub)
		}
	}
	rest.compact().counted()
	switch {
	case rest.count == 0:
		return nil
	case rest.stat == f.stat && rest.left == f.left && rest.module == f.module &&
		slices.Equal(rest.files, f.files) && slices.Equal(rest.subs, f.subs):
		return f
	}
	return rest
}

// forgetBut is forget for a directory, but for the part that is barred.
func (s *scan) forgetBut(path string, f, rest *folder) {
	switch {
	case rest == nil:
		s.forget(path, slot{folder: f})
		return
	case rest == f, isBarred(f.name, object.Directory):
		return
	}
	s.record(path, metadata.Entry{})
	if !f.module.IsZero() {
		s.change(history.Change{Path: path})
	}
	for i := range f.files {
		if file := &f.files[i]; rest.file(file.name) == nil {
			s.forget(join(path, file.name), slot{file: file})
		}
	}
	for _, sub := range f.subs {
		s.forgetBut(join(path, sub.name), sub, rest.sub(sub.name))
	}
}
