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

// rules reads the ignore file of the directory p, where the cursor is. What is no regular
// file, or cannot be read, counts as absent, as with git. One that is too large might
// name anything, as the secrets next to it, and a commit cannot be taken back: then
// everything that is not tracked counts as ignored, until it fits.
func (s *scan) rules(p *place) (ignore.Patterns, error) {
	dir := s.cursor.Here()
	stat, is := regularAt(dir, ignoreFile)
	if !is {
		return ignore.Patterns{}, nil
	}
	if stat.Size > int64(maxRules-p.rules) {
		// The directory is looked at from top to bottom until that is put right.
		p.left = Rules
		s.skip(p.path, Rules, p.leftBefore())
		return ignore.FromList([]string{"*"}), nil
	}
	content, err := s.small(dir, ignoreFile, stat)
	switch {
	case errors.Is(err, errUnreadable), errors.Is(err, descent.ErrMount):
		return ignore.Patterns{}, nil
	case err != nil:
		return ignore.Patterns{}, err
	}
	p.rules += len(content)
	return ignore.Parse(content), nil
}

// regularAt looks at name if it is a regular file of the tree.
func regularAt(dir *descent.Directory, name string) (descent.Stat, bool) {
	stat, err := dir.Stat(name)
	return stat, err == nil && StatOf(stat).isRegular() && !stat.Mount
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
