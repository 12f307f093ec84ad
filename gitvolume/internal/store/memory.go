package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/errortext"
	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/worktree"
)

// ErrNoMemory says that nothing usable is remembered of the tree at that commit: every
// file has to be read.
var ErrNoMemory = errors.New("nothing is remembered of the tree at that commit")

// memoryLine begins a memory's file and names the commit. What follows has a checksum of
// its own.
const memoryLine = "git-csi-tree %s\n"

// SaveMemory keeps what is remembered of the volume's tree as of the commit. It is not
// made durable, since it costs nothing but time to lose it; a crash leaves the old one, the
// new one, or one that LoadMemory does not take.
func (s *Store) SaveMemory(volume string, commit object.ID, memory *worktree.Memory) error {
	if err := handle.Check(volume); err != nil {
		return err
	}
	path := s.path(volumesDir, volume, memoryFile)
	next := path + durable.Suffix
	err := writeMemory(next, commit, memory)
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

func writeMemory(path string, commit object.ID, memory *worktree.Memory) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	to := bufio.NewWriter(file)
	_, err = fmt.Fprintf(to, memoryLine, commit)
	if err == nil {
		_, err = memory.WriteTo(to)
	}
	if err == nil {
		err = to.Flush()
	}
	return errors.Join(err, file.Close())
}

// LoadMemory gives what is remembered of the volume's tree as of the commit. The error
// wraps ErrNoMemory where there is none, where it is of another commit, and where it is
// broken.
func (s *Store) LoadMemory(volume string, commit object.ID) (*worktree.Memory, error) {
	memory, err := s.loadMemory(volume, commit)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, worktree.ErrBroken) || errors.Is(err, storedir.ErrNotAFile) {
		err = fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	if err != nil {
		return nil, fmt.Errorf("load what is remembered of volume %q: %w", volume, err)
	}
	return memory, nil
}

func (s *Store) loadMemory(volume string, commit object.ID) (*worktree.Memory, error) {
	if err := handle.Check(volume); err != nil {
		return nil, err
	}
	dir, err := storedir.OpenDir(s.volumes, volume)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := storedir.OpenFile(dir, memoryFile, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	from := bufio.NewReader(file)
	line := fmt.Sprintf(memoryLine, commit)
	found, err := from.Peek(len(line))
	if string(found) != line {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrNoMemory
		}
		return nil, fmt.Errorf("it is not of commit %s: %w", commit, err)
	}
	if _, err := from.Discard(len(line)); err != nil {
		return nil, err
	}
	return worktree.ReadMemory(from)
}
