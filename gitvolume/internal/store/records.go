package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
)

// The names in a volume's directory. All of a volume is in one, so that it goes as a
// whole, and comes back from the trash as a whole.
const (
	recordFile = "record.json"
	memoryFile = "memory"
	markFile   = "mark"
	treeName   = "tree"
)

// longestRecord bounds what is read of a record, in bytes: a class may have 256 KiB of
// parameters, of which JSON makes six times as much at most.
const longestRecord = 4 << 20

// Problem is a volume of which the record cannot be read.
type Problem struct {
	Volume string // What is in the record's place; a handle if it can be one.
	Err    error
}

// Save writes the record of the volume that it names, durably.
func (s *Store) Save(r Record) error {
	text, err := formatRecord(r)
	if err != nil {
		return err
	}
	if err := s.makeVolume(r.Handle); err != nil {
		return fmt.Errorf("save the record of volume %q: %w", r.Handle, err)
	}
	s.step("write record")
	if err := durable.Replace(s.path(volumesDir, r.Handle, recordFile), text, 0o600); err != nil {
		return fmt.Errorf("save the record of volume %q: %w", r.Handle, err)
	}
	return nil
}

// makeVolume makes a volume's directory, if there is none.
func (s *Store) makeVolume(volume string) error {
	dir, err := storedir.OpenDir(s.volumes, volume)
	if err == nil {
		return dir.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A disk mounted over the store since would hide the new volume at the next start.
	if err := storedir.StillAt(s.volumes); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	s.step("make volume")
	if err := unix.Mkdirat(int(s.volumes.Fd()), volume, storedir.Mode); err != nil {
		return fmt.Errorf("make its directory: %w", err)
	}
	return s.volumes.Sync()
}

// Load reads a volume's record. The error wraps ErrNoRecord, ErrNewerRecord or
// ErrDamagedRecord, or is one of the disk. A damaged record is set aside and can be
// looked at there, as the error says; a tree of the volume stays where it is, and nothing
// names it any more.
func (s *Store) Load(volume string) (Record, error) {
	record, err := s.read(volume)
	if errors.Is(err, ErrDamagedRecord) {
		err = s.setAsideRecord(volume, err)
	}
	if err != nil {
		return Record{}, fmt.Errorf("load the record of volume %q: %w", volume, err)
	}
	return record, nil
}

func (s *Store) setAsideRecord(volume string, damage error) error {
	dir, err := storedir.OpenDir(s.volumes, volume)
	if err != nil {
		return errors.Join(damage, err)
	}
	defer dir.Close()
	path, err := s.setAside(dir, recordFile, about{Volume: volume, Why: damage.Error()})
	if err != nil {
		return errors.Join(damage, err)
	}
	s.settings.Log.Error("a volume's record is damaged and was set aside", "volume", volume, "path", path, "error", damage)
	return fmt.Errorf("%w: it is %q now", damage, path)
}

// read reads a record and changes nothing.
func (s *Store) read(volume string) (Record, error) {
	if err := handle.Check(volume); err != nil {
		return Record{}, err
	}
	dir, err := storedir.OpenDir(s.volumes, volume)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, ErrNoRecord
	}
	if err != nil {
		return Record{}, err
	}
	defer dir.Close()
	return readRecord(dir, volume)
}

func readRecord(dir *os.File, volume string) (Record, error) {
	text, err := storedir.ReadFile(dir, recordFile, longestRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Record{}, ErrNoRecord
	case errors.Is(err, storedir.ErrNotAFile), errors.Is(err, storedir.ErrTooLong):
		return Record{}, fmt.Errorf("%w: %w", ErrDamagedRecord, err)
	case err != nil:
		return Record{}, err
	}
	return parseRecord(volume, text)
}

// All loads the records of all volumes, in the order of their handles. What has none that
// can be used is a problem: a tree that was left without one, too.
func (s *Store) All() (records []Record, problems []Problem, err error) {
	volumes, err := storedir.Names(s.volumes)
	if err != nil {
		return nil, nil, fmt.Errorf("list the volumes: %w", err)
	}
	slices.Sort(volumes)
	for _, volume := range volumes {
		record, err := s.Load(volume)
		switch {
		case err == nil:
			records = append(records, record)
		case errors.Is(err, ErrNoRecord) && !s.hasTree(volume):
			// It is about to be made, or to go at the next start.
		default:
			problems = append(problems, Problem{Volume: volume, Err: err})
		}
	}
	return records, problems, nil
}

// Remove takes all that the store has of a volume away: its record and, if it has one,
// its tree, which stays in the trash for the time that trees are kept there. The caller
// knows that nobody needs it. That there is nothing is no error.
func (s *Store) Remove(volume string) error {
	if err := handle.Check(volume); err != nil {
		return err
	}
	record, loaded := s.read(volume)
	bin, tree := s.now, s.hasTree(volume)
	if tree {
		bin = s.kept
	}
	s.step("trash volume")
	err := bin.Put(s.volumes, volume)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("remove volume %q: %w", volume, err)
	}
	s.suspects.forget(volume)
	switch {
	case tree && loaded == nil:
		s.settings.Log.Info("the tree of a removed volume is in the trash", "volume", volume, "repo", record.URL.Repo(),
			"kept", s.settings.TrashKeep, "unpushed", record.Position.HasUnpushed(), "diverged", record.Position.Diverged)
	case tree:
		s.settings.Log.Info("the tree of a removed volume is in the trash, and had no record", "volume", volume, "kept", s.settings.TrashKeep)
	}
	s.AskTidy()
	return nil
}
