package copies

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// The files that describe a store.
const (
	formatFile  = "format"
	clusterFile = "cluster"
	lockFile    = "lock"
)

// format is the layout this code reads and writes. A store of a higher number
// was written by a later release, whose rules this one does not know.
const format = 1

// lock keeps a second process off the store: two would each believe their own
// table of locks. The kernel drops it when the process ends, however it ends.
func (s *Store) lock() error {
	f, err := os.OpenFile(filepath.Join(s.config.Dir, lockFile), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("open its lock: %w", err)
	}
	s.unlock = f
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return errors.New("another process is using it, stop that one first")
		}
		return fmt.Errorf("lock it: %w", err)
	}
	return nil
}

func (s *Store) checkFormat() error {
	path := filepath.Join(s.config.Dir, formatFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.writeDurably(formatFile, fmt.Appendf(nil, "%d\n", format))
	}
	if err != nil {
		return fmt.Errorf("read its format: %w", err)
	}
	found, err := strconv.Atoi(strings.TrimSpace(string(data)))
	switch {
	case err != nil || found < 1:
		return fmt.Errorf("its format file holds %.40q, not a number: it is not a store of this driver, or it is damaged", data)
	case found > format:
		return fmt.Errorf("it has format %d, this release knows formats up to %d: run the release that wrote it, or a later one", found, format)
	}
	return nil
}

// Cluster returns the UID recorded for the cluster this store belongs to, empty
// when none was recorded yet.
func (s *Store) Cluster() (string, error) {
	data, err := os.ReadFile(filepath.Join(s.config.Dir, clusterFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the store's cluster: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// SetCluster records the cluster, durably: it is what keeps another cluster from
// removing everything.
func (s *Store) SetCluster(uid string) error {
	if err := s.writeDurably(clusterFile, []byte(uid+"\n")); err != nil {
		return fmt.Errorf("record the store's cluster: %w", err)
	}
	return nil
}

// writeDurably replaces one of the store's own files. The unfinished file is kept
// beside it: the root file system may be read-only.
func (s *Store) writeDurably(name string, data []byte) error {
	return renameio.WriteFile(filepath.Join(s.config.Dir, name), data, 0o600, renameio.WithTempDir(s.config.Dir))
}

// cleanFiles removes what a killed process left of writing those files.
func (s *Store) cleanFiles() error {
	entries, err := os.ReadDir(s.config.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "."+formatFile) || strings.HasPrefix(entry.Name(), "."+clusterFile) {
			if err := os.Remove(filepath.Join(s.config.Dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
