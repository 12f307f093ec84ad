package worktree

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/ignore"
)

// maxRules is how many bytes the ignore files on the way to one directory may have
// together. Parsed they take up to thirty times that, and the application writes them.
const maxRules = 512 << 10

// maxLevels is how many bytes of memory the levels on the way to one directory may take
// together. With patterns of many parts that match at each depth, each level has another
// part of them to go on with.
const maxLevels = 64 << 20

// rules reads the ignore file of the directory p, where the cursor is. What is no regular
// file, or must not be read, counts as absent, as with git. One that is too large, or
// cannot be read, might name anything, as the secrets next to it, and a commit cannot be
// taken back: then everything that is not tracked counts as ignored, until it is known.
func (s *scan) rules(p *place) (ignore.Patterns, error) {
	dir := s.cursor.Here()
	stat, err := dir.Stat(ignoreFile)
	switch {
	case descent.Vanished(err), err == nil && (!StatOf(stat).isRegular() || stat.Mount):
		return ignore.Patterns{}, nil
	case err != nil:
		return s.unruled(p, readError("look at", err))
	case stat.Size > int64(maxRules-p.rules):
		return s.closed(p), nil
	}
	content, err := s.small(dir, ignoreFile, stat)
	if err != nil {
		return s.unruled(p, err)
	}
	p.rules += len(content)
	return ignore.Parse(content), nil
}

// unruled is for a directory of which the ignore file could not be read. As with git it
// counts as absent if that is forbidden; but not if a disk fails.
func (s *scan) unruled(p *place, err error) (ignore.Patterns, error) {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, descent.ErrMount):
		return ignore.Patterns{}, nil
	case errors.Is(err, errUnreadable):
		return s.closed(p), nil
	}
	return ignore.Patterns{}, err
}

// closed are the rules of a directory of which nobody knows what they should be. It is
// looked at from top to bottom until that is put right.
func (s *scan) closed(p *place) ignore.Patterns {
	if p.left != Rules {
		p.left = Rules
		s.skip(p.path, Rules, p.leftBefore())
	}
	return ignore.FromList([]string{"*"})
}

// small reads a whole file that has not more than maxRules bytes.
func (s *scan) small(dir *descent.Directory, name string, seen descent.Stat) ([]byte, error) {
	fd, err := openRegular(dir, name, seen)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	content, err := io.ReadAll(io.LimitReader(handle(fd), maxRules))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) != seen.Size {
		return nil, errTorn
	}
	after, err := dir.Look(fd)
	if err != nil {
		return nil, readError("stat", err)
	}
	if StatOf(after) != StatOf(seen) {
		return nil, errTorn
	}
	return content, nil
}
