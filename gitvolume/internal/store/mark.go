package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
)

// suspects are the volumes in whose native work the process ended, and how often in a
// row.
type suspects struct {
	mu    sync.Mutex
	ends  map[string]int
	muted bool // That marks cannot be made was told.
}

func (s *suspects) forget(volume string) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.ends[volume] > 0
	delete(s.ends, volume)
	return was
}

// A mark is a file that stays, since making and removing one would cost ten times as much:
// 1 while the volume is in native work and 0 otherwise, and after a blank how many ends
// there were in a row.
const (
	longestMark = 32 // In bytes.

	marked   = "1"
	unmarked = "0"
	cleared  = "0 0\n"
)

// Mark notes that the volume is in native work, whose crash ends the process, until ended
// is called. The note outlives the process and not a power cut, so it costs a moment. Where
// it cannot be made, as on a full disk, the work goes on without it. A volume is in native
// work once at a time.
func (s *Store) Mark(volume string) (ended func()) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Open(s.path(volumesDir, volume, markFile), flags, 0o600)
	if err == nil {
		_, err = unix.Pwrite(fd, []byte(marked), 0)
		if err != nil {
			_ = unix.Close(fd) // Nothing was written.
		}
	}
	if err != nil {
		s.tellUnmarked(volume, err)
		return func() {}
	}
	return sync.OnceFunc(func() { // A second close could be of somebody else's file.
		text := unmarked
		if s.suspects.forget(volume) {
			text = cleared
		}
		// It cannot fail where the mark could be written, but for a disk that has just broken.
		_, _ = unix.Pwrite(fd, []byte(text), 0)
		_ = unix.Close(fd)
	})
}

func (s *Store) tellUnmarked(volume string, err error) {
	s.suspects.mu.Lock()
	defer s.suspects.mu.Unlock()
	if !s.suspects.muted {
		s.suspects.muted = true
		s.settings.Log.Warn("native work goes on without a mark, so a crash would not be told of its volume", "volume", volume, "error", err)
	}
}

// Suspects are the volumes that were in native work when the process ended, with how many
// ends of processes that was in a row. A volume is none any more when its native work
// ended well.
func (s *Store) Suspects() map[string]int {
	s.suspects.mu.Lock()
	defer s.suspects.mu.Unlock()
	return maps.Clone(s.suspects.ends)
}

// readSuspects makes suspects of the marks that the process before left.
func (s *Store) readSuspects() error {
	s.suspects.ends = make(map[string]int)
	volumes, err := storedir.Names(s.volumes)
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if handle.Check(volume) != nil {
			continue
		}
		dir, err := storedir.OpenDir(s.volumes, volume)
		if err != nil {
			continue // It is no volume, and All tells of it.
		}
		ends, err := countEnds(dir)
		if err = errors.Join(err, dir.Close()); err != nil {
			s.settings.Log.Warn("cannot tell whether a volume's native work ended a process", "volume", volume, "error", err)
		}
		if ends > 0 {
			s.suspects.ends[volume] = ends
		}
	}
	return nil
}

// countEnds reads how many ends there were, and adds the one that the mark tells of.
func countEnds(dir *os.File) (int, error) {
	text, err := storedir.ReadFile(dir, markFile, longestMark)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	mark, count, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	// One that was cut off, or is damaged, counts from anew.
	known, err := strconv.ParseUint(strings.TrimSpace(count), 10, 31)
	if err != nil {
		known = 0
	}
	ends := int(known)
	if mark != marked {
		return ends, nil
	}
	ends++
	file, err := storedir.OpenFile(dir, markFile, unix.O_WRONLY)
	if err != nil {
		return ends, err
	}
	_, err = fmt.Fprintf(file, "%s %d\n", unmarked, ends)
	return ends, errors.Join(err, file.Close())
}
