package copies

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/errortext"
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

// noCluster is recorded in a new store. A store without any record has lost it,
// and must not take the first cluster that answers for its own.
const noCluster = "none"

// ErrClusterLost is wrapped when a store does not tell its cluster any more.
var ErrClusterLost = errors.New("the store's record of its cluster is lost, start once with --adopt-store if this cluster is the one")

// lock keeps a second process off the store: two would each believe their own
// table of locks. The kernel drops it when the process ends, however it ends.
func (s *Store) lock() error {
	// Not for writing: that would keep the administrator from making the disk
	// read-only, and a store on one that is from being opened.
	f, err := openFile(s.dir, lockFile, unix.O_RDONLY|unix.O_CREAT)
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

// checkFormat reads the format, or makes an empty directory a store: the format
// is written last, so that a store that has one has everything.
func (s *Store) checkFormat() error {
	data, err := readFile(s.dir, formatFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s.makeStore()
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

func (s *Store) makeStore() error {
	if err := s.writeDurably(clusterFile, noCluster); err != nil {
		return fmt.Errorf("write to it: %w", err)
	}
	if err := s.writeDurably(formatFile, strconv.Itoa(format)); err != nil {
		return fmt.Errorf("write to it: %w", err)
	}
	return nil
}

// checkForeign refuses to make a store of a directory that is full of something
// else: its mode would change, and one day things would be removed from it. It
// comes before anything is written.
func (s *Store) checkForeign() error {
	if _, err := readFile(s.dir, formatFile); !errors.Is(err, fs.ErrNotExist) {
		return nil // checkFormat judges it
	}
	entries, err := os.ReadDir(s.config.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == lockFile, name == clusterFile, name == lostFoundDir, strings.HasPrefix(name, unfinished):
		case name == copiesDir, name == holdsDir, name == trashDir, name == ScratchDir:
			if err := s.checkEmptyPart(name); err != nil {
				return err
			}
		default:
			return fmt.Errorf("it holds %q and no store's format: choose an empty directory", name)
		}
	}
	return nil
}

func (s *Store) checkEmptyPart(name string) error {
	dir, err := openDirAt(s.dir, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(1)
	if len(names) > 0 {
		return fmt.Errorf("%q in it holds %q, but it has no store's format: choose an empty directory", name, names[0])
	}
	_ = err // io.EOF of an empty directory
	return nil
}

// Cluster returns the UID recorded for the cluster this store belongs to, empty
// when none was yet. The error wraps ErrClusterLost when there is no record.
func (s *Store) Cluster() (string, error) {
	data, err := readFile(s.dir, clusterFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the store's cluster: %w", err)
	}
	switch uid := strings.TrimSpace(string(data)); uid {
	case "":
		return "", ErrClusterLost
	case noCluster:
		return "", nil
	default:
		return uid, nil
	}
}

// SetCluster records the cluster, durably: it is what keeps another cluster from
// removing everything.
func (s *Store) SetCluster(uid string) error {
	if err := s.writeDurably(clusterFile, uid); err != nil {
		return fmt.Errorf("record the store's cluster: %w", err)
	}
	return nil
}

// writeDurably replaces one of the store's own files.
func (s *Store) writeDurably(name, line string) error {
	if err := replaceFile(s.dir, name, []byte(line+"\n"), (*os.File).Sync); err != nil {
		return errortext.WithoutPath(err)
	}
	return s.dir.Sync()
}
