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

// memoryWord begins a memory's file, before the commit. What follows has a checksum of its
// own.
const memoryWord = "git-csi-tree "

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
	_, err = fmt.Fprintf(to, "%s%s\n", memoryWord, commit)
	if err == nil {
		_, err = memory.WriteTo(to)
	}
	if err == nil {
		err = to.Flush()
	}
	return errors.Join(err, file.Close())
}

// LoadMemory gives what is remembered of the volume's tree, and as of which commit. The
// error wraps ErrNoMemory where there is none and where it is broken.
func (s *Store) LoadMemory(volume string) (object.ID, *worktree.Memory, error) {
	commit, memory, err := s.loadMemory(volume)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, worktree.ErrBroken) || errors.Is(err, storedir.ErrNotAFile) {
		err = fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	if err != nil {
		return object.ID{}, nil, fmt.Errorf("load what is remembered of volume %q: %w", volume, err)
	}
	return commit, memory, nil
}

func (s *Store) loadMemory(volume string) (commit object.ID, memory *worktree.Memory, err error) {
	if err := handle.Check(volume); err != nil {
		return commit, nil, err
	}
	dir, err := storedir.OpenDir(s.volumes, volume)
	if err != nil {
		return commit, nil, err
	}
	defer dir.Close()
	file, err := storedir.OpenFile(dir, memoryFile, unix.O_RDONLY)
	if err != nil {
		return commit, nil, err
	}
	defer file.Close()
	from := bufio.NewReader(file)
	if commit, err = readMemoryLine(from); err != nil {
		return commit, nil, err
	}
	memory, err = worktree.ReadMemory(from)
	return commit, memory, err
}

// readMemoryLine reads the commit.
func readMemoryLine(from io.Reader) (object.ID, error) {
	line := make([]byte, len(memoryWord)+2*object.IDSize+1)
	if _, err := io.ReadFull(from, line); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = ErrNoMemory
		}
		return object.ID{}, err
	}
	text, found := strings.CutPrefix(string(line), memoryWord)
	if !found {
		return object.ID{}, ErrNoMemory
	}
	commit, err := object.Parse(strings.TrimSuffix(text, "\n"))
	if err != nil {
		return object.ID{}, fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	return commit, nil
}
