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

// findDirectory is findFile for a directory.
func (s *scan) findDirectory(p *place, d child, path string) {
	last := d.old.folder
	if s.request.Seen != nil {
		last = p.seen.sub(d.name)
	}
	if last == nil || last.stat.isKnown() && last.stat != directoryStat(d.stat) {
		s.found = append(s.found, path)
	}
}

// gone forgets an entry of p that is not there any more.
func (s *scan) gone(p *place, old slot) {
	switch {
	case old.file != nil:
		path := join(p.path, old.file.name)
		if s.lastSeen(p, old.file.name, old.file) != nil {
			s.found = append(s.found, path)
		}
		s.forget(path, slot{file: old.file})
	case old.folder != nil:
		path := join(p.path, old.folder.name)
		if s.request.Seen == nil || p.seen.sub(old.folder.name) != nil {
			s.found = append(s.found, path)
		}
		s.forget(path, slot{folder: old.folder})
	}
}
