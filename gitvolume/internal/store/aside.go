package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/storedir"
)

// aboutFile says what a directory of the store is of, for people and, in a repository,
// for the store.
const aboutFile = "about.json"

// mostAside is how many copies of one repository are kept aside: they are for somebody to
// look at, and one that breaks again and again must not fill the disk.
const mostAside = 3

// about is what is written beside what was set aside.
type about struct {
	Volume     string    `json:"volume,omitempty"`
	Repository string    `json:"repository,omitempty"` // Its URL.
	Why        string    `json:"why"`
	When       time.Time `json:"when"`
}

// setAside moves name of dir into a new directory of those that are set aside, with a
// note, and gives its path there. A crash leaves either an old place or a new one.
func (s *Store) setAside(dir *os.File, name string, note about) (string, error) {
	aside := s.dir.Part(asideDir)
	note.When = time.Now().UTC()
	s.step("make wrapper")
	wrapper, err := makeWrapper(aside, note.When)
	if err != nil {
		return "", err
	}
	defer wrapper.Close()
	text, err := json.MarshalIndent(note, "", "  ")
	if err != nil {
		return "", fmt.Errorf("say why it is set aside: %w", err)
	}
	s.step("say why")
	if err := durable.Replace(filepath.Join(wrapper.Name(), aboutFile), append(text, '\n'), 0o600); err != nil {
		return "", fmt.Errorf("say why it is set aside: %w", err)
	}
	s.step("set aside")
	if err := unix.Renameat(int(dir.Fd()), name, int(wrapper.Fd()), name); err != nil {
		return "", fmt.Errorf("set %q aside: %w", name, err)
	}
	// The new place before the old one: a crash in between must not lose it.
	for _, changed := range []*os.File{wrapper, aside, dir} {
		if err := changed.Sync(); err != nil {
			return "", fmt.Errorf("set %q aside durably: %w", name, err)
		}
	}
	return filepath.Join(wrapper.Name(), name), nil
}

// makeWrapper makes a directory that is called after the time.
func makeWrapper(aside *os.File, when time.Time) (*os.File, error) {
	for {
		name := when.Format("20060102T150405.000000000Z")
		err := unix.Mkdirat(int(aside.Fd()), name, storedir.Mode)
		if err == nil {
			return storedir.OpenDir(aside, name)
		}
		if !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("make %q among what is set aside: %w", name, err)
		}
		when = when.Add(time.Nanosecond)
	}
}

// thinAside moves the oldest copies of a repository that are aside to the trash.
func (s *Store) thinAside(repository string) error {
	aside := s.dir.Part(asideDir)
	wrappers, err := storedir.Names(aside)
	if err != nil {
		return err
	}
	wrappers = slices.DeleteFunc(wrappers, func(wrapper string) bool {
		var stat unix.Stat_t
		return unix.Fstatat(int(aside.Fd()), filepath.Join(wrapper, repository), &stat, unix.AT_SYMLINK_NOFOLLOW) != nil
	})
	slices.Sort(wrappers)
	var errs []error
	for _, wrapper := range wrappers[:max(0, len(wrappers)-mostAside)] {
		errs = append(errs, s.now.Put(aside, wrapper))
	}
	return errors.Join(errs...)
}
