package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/errortext"
	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/worktree"
)

// ErrNoMemory says that nothing usable is remembered of the tree: every file has to be
// read.
var ErrNoMemory = errors.New("nothing is remembered of the tree")

// Remembered is what a memory of a tree is as of: the commits that had its content, and the
// record of its modes, owners and empty directories, when it was kept. Either may be zero.
type Remembered struct{ Tip, Metadata object.ID }

// memoryWord begins a memory's file, before the two commits. What follows has a checksum of
// its own. A file of before there were two is none.
const memoryWord = "git-csi-tree "

// SaveMemory keeps what is remembered of the volume's tree as of its commits. It is not
// made durable, since it costs nothing but time to lose it; a crash leaves the old one, the
// new one, or one that LoadMemory does not take.
func (s *Store) SaveMemory(volume string, of Remembered, memory *worktree.Memory) error {
	if err := handle.Check(volume); err != nil {
		return err
	}
	path := s.path(volumesDir, volume, memoryFile)
	next := path + durable.Suffix
	err := writeMemory(next, of, memory)
	if err == nil {
		s.step("put memory in place")
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next) // On a full disk it may be what fills it; else the next start removes it.
		return fmt.Errorf("keep what is remembered of volume %q: %w", volume, errortext.WithoutPath(err))
	}
	return nil
}

func writeMemory(path string, of Remembered, memory *worktree.Memory) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	to := bufio.NewWriter(file)
	_, err = fmt.Fprintf(to, "%s%s %s\n", memoryWord, of.Tip, of.Metadata)
	if err == nil {
		_, err = memory.WriteTo(to)
	}
	if err == nil {
		err = to.Flush()
	}
	return errors.Join(err, file.Close())
}

// LoadMemory gives what is remembered of the volume's tree, and as of what. The
// error wraps ErrNoMemory where there is none and where it is broken.
func (s *Store) LoadMemory(volume string) (Remembered, *worktree.Memory, error) {
	of, memory, err := s.loadMemory(volume)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, worktree.ErrBroken) || errors.Is(err, storedir.ErrNotAFile) {
		err = fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	if err != nil {
		return Remembered{}, nil, fmt.Errorf("load what is remembered of volume %q: %w", volume, err)
	}
	return of, memory, nil
}

func (s *Store) loadMemory(volume string) (of Remembered, memory *worktree.Memory, err error) {
	if err := handle.Check(volume); err != nil {
		return of, nil, err
	}
	dir, err := storedir.OpenDir(s.volumes, volume)
	if err != nil {
		return of, nil, err
	}
	defer dir.Close()
	file, err := storedir.OpenFile(dir, memoryFile, unix.O_RDONLY)
	if err != nil {
		return of, nil, err
	}
	defer file.Close()
	from := bufio.NewReader(file)
	if of, err = readMemoryLine(from); err != nil {
		return of, nil, err
	}
	memory, err = worktree.ReadMemory(from)
	return of, memory, err
}

// readMemoryLine reads the commits.
func readMemoryLine(from io.Reader) (of Remembered, err error) {
	line := make([]byte, len(memoryWord)+2*(2*object.IDSize+1))
	if _, err := io.ReadFull(from, line); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = ErrNoMemory
		}
		return of, err
	}
	text, found := strings.CutPrefix(string(line), memoryWord)
	text, ended := strings.CutSuffix(text, "\n")
	tip, metadata, two := strings.Cut(text, " ")
	if !found || !ended || !two {
		return of, ErrNoMemory
	}
	if of.Tip, err = object.Parse(tip); err == nil {
		of.Metadata, err = object.Parse(metadata)
	}
	if err != nil {
		return Remembered{}, fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	return of, nil
}
