package worktree

// lastSeen is what the scan before this one found at the entry name of p.
func (s *scan) lastSeen(p *place, name string, before *file) *file {
	if s.request.Seen == nil {
		return before
	}
	return p.seen.file(name)
}

// leftBefore is why the entry name of p was left out when it was looked at last.
func (s *scan) leftBefore(p *place, name string, before *file) Reason {
	if last := s.lastSeen(p, name, before); last != nil {
		return last.left
	}
	return 0
}

// findFile tells of an entry of p that is not as it was when it was last looked at. What
// was never looked at is no news.
func (s *scan) findFile(p *place, name, path string, now Stat, before *file) {
	last := s.lastSeen(p, name, before)
	if last == nil || last.stat.isKnown() && last.stat != now {
		s.found = append(s.found, path)
	}
}

// findDirectory is findFile for a directory. One that cannot be entered may be remembered
// as a file is.
func (s *scan) findDirectory(p *place, d child, path string) {
	folder, file, now := d.old.folder, d.old.file, directoryStat(d.stat)
	if s.request.Seen != nil {
		folder, file = p.seen.sub(d.name), p.seen.file(d.name)
	}
	switch {
	case folder != nil && (!folder.stat.isKnown() || folder.stat == now):
	case file != nil && file.stat == now:
	default:
		s.found = append(s.found, path)
	}
}

// gone is what is remembered of an entry of p that is not there any more: nothing, but
// for what is barred.
func (s *scan) gone(p *place, old slot) slot {
	switch {
	case old.file != nil:
		path := join(p.path, old.file.name)
		rest := slot{file: old.file.barred()}
		if last := s.lastSeen(p, old.file.name, old.file); last != nil && (rest.file == nil || last.stat.isKnown()) {
			s.found = append(s.found, path)
		}
		if rest.file == nil {
			s.forget(path, old)
		}
		return rest
	case old.folder != nil:
		path := join(p.path, old.folder.name)
		last, rest := old.folder, old.folder.barred()
		if s.request.Seen != nil {
			last = p.seen.sub(old.folder.name)
		}
		if last != nil && (rest == nil || last.stat.isKnown()) {
			s.found = append(s.found, path)
		}
		s.forgetBut(path, old.folder, rest)
		return slot{folder: rest}
	}
	return slot{}
}
