package storedir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"liken.sh/csicommon/durable"
)

// The files that describe a store.
const (
	formatFile  = "format"
	clusterFile = "cluster"
	lockFile    = "lock"
)

// noCluster is recorded in a new store. A store without any record has lost it,
// and must not take the first cluster that answers for its own.
const noCluster = "none"

// ErrClusterLost is wrapped when a store does not tell its cluster any more.
var ErrClusterLost = errors.New("the store's record of its cluster is lost, start once with --adopt-store if this cluster is the one")

// checkFormat reads the format, or makes an empty directory a store: the format
// is written last, so that a store that has one has everything.
func (s *Store) checkFormat() error {
	data, err := ReadFile(s.dir, formatFile, longestFile)
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
	case found > s.layout.Format:
		return fmt.Errorf("it has format %d, this release knows formats up to %d: run the release that wrote it, or a later one", found, s.layout.Format)
	}
	return nil
}

func (s *Store) makeStore() error {
	for _, file := range []struct{ name, line string }{{clusterFile, noCluster}, {formatFile, strconv.Itoa(s.layout.Format)}} {
		if err := s.write(file.name, file.line); err != nil {
			return fmt.Errorf("write to it: %w", err)
		}
	}
	return nil
}

// Cluster is the UID recorded for the cluster this store belongs to, empty when none
// was yet. The error wraps ErrClusterLost when there is no record.
func (s *Store) Cluster() (string, error) {
	data, err := ReadFile(s.dir, clusterFile, longestFile)
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
	if err := s.write(clusterFile, uid); err != nil {
		return fmt.Errorf("record the store's cluster: %w", err)
	}
	return nil
}

// write replaces one of the files that describe the store.
func (s *Store) write(name, line string) error {
	return durable.Replace(filepath.Join(s.layout.Dir, name), []byte(line+"\n"), 0o600)
}
