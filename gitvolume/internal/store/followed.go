package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
)

// followed is what of the repositories somebody needs.
type followed struct {
	// refs are those that the records of a repository follow, by its name. A repository
	// with a record is in it, whatever refs it has.
	refs map[string]map[string]bool
	// unknown are the parts of refs of volumes whose record cannot be read: whatever a
	// repository has of them stays.
	unknown map[string]bool
}

// followed reads what the volumes of the store need, and those whose tree is in the trash,
// which somebody may take out again.
func (s *Store) followed() (followed, error) {
	f := followed{refs: make(map[string]map[string]bool), unknown: make(map[string]bool)}
	volumes, err := storedir.Names(s.volumes)
	if err != nil {
		return f, err
	}
	for _, volume := range volumes {
		record, err := s.read(volume)
		switch {
		case err == nil:
			f.add(record)
		case !errors.Is(err, ErrNoRecord) || s.hasTree(volume):
			f.unknown[refPart(volume)] = true
		}
	}
	// An item lies in the trash by itself or in a directory.
	for _, pattern := range []string{"*", "*/*"} {
		found, err := fs.Glob(os.DirFS(s.path(trashDir, keptDir)), pattern+"/"+recordFile)
		if err != nil {
			return f, err
		}
		for _, path := range found {
			f.addTrashed(s.path(trashDir, keptDir, path))
		}
	}
	return f, nil
}

func (f followed) add(r Record) {
	name := repositoryName(r.URL, r.Depth)
	if f.refs[name] == nil {
		f.refs[name] = make(map[string]bool)
	}
	for _, ref := range remoteRefsOf(r) {
		f.refs[name][ref] = true
	}
	f.refs[name][volumeRefs+refPart(r.Handle)+"/"] = true
}

// addTrashed adds the volume of a record that is in the trash. Its directory's name may
// have been cut there, so the handle is taken from the record.
func (f followed) addTrashed(path string) {
	dir, err := openPath(filepath.Dir(path))
	if err != nil {
		return // It was deleted meanwhile, or is no volume.
	}
	defer dir.Close()
	text, err := storedir.ReadFile(dir, recordFile, longestRecord)
	if err != nil {
		return
	}
	var named struct {
		Handle string `json:"handle"`
	}
	if err := json.Unmarshal(text, &named); err != nil || handle.Check(named.Handle) != nil {
		return
	}
	if record, err := parseRecord(named.Handle, text); err == nil {
		f.add(record)
	} else {
		f.unknown[refPart(named.Handle)] = true
	}
}

// openPath opens a directory that no link is in the place of.
func openPath(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// needs tells whether somebody needs a ref of a repository.
func (f followed) needs(repository, ref string) bool {
	below, isVolume := strings.CutPrefix(ref, volumeRefs)
	if !isVolume {
		return !strings.HasPrefix(ref, ownRefs) || f.refs[repository][ref]
	}
	part, _, _ := strings.Cut(below, "/")
	return f.unknown[part] || f.refs[repository][volumeRefs+part+"/"]
}
