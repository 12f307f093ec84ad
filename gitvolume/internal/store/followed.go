package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
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
	return f, s.addTrashed(f)
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

// addTrashed adds the volumes whose tree is in the trash. One lies there by itself or in a
// directory: what is deeper is the application's.
func (s *Store) addTrashed(f followed) error {
	bin := os.DirFS(s.path(trashDir, keptDir))
	items, err := fs.ReadDir(bin, ".")
	if err != nil {
		return err
	}
	for _, item := range items {
		path := item.Name()
		if _, err := fs.Stat(bin, path+"/"+recordFile); err != nil {
			inside, err := fs.ReadDir(bin, path)
			if err != nil || len(inside) != 1 {
				continue // It is being deleted, or is no volume with a record.
			}
			path += "/" + inside[0].Name()
		}
		f.addAt(s.path(trashDir, keptDir, path))
	}
	return nil
}

// addAt adds the volume of a directory in the trash, of which the name may have been cut
// there: the handle is the one in the record.
func (f followed) addAt(path string) {
	dir, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
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

// needs tells whether somebody needs a ref of a repository.
func (f followed) needs(repository, ref string) bool {
	below, isVolume := strings.CutPrefix(ref, volumeRefs)
	if strings.HasPrefix(ref, checkoutRefs) && len(f.unknown) > 0 {
		return true // Whose record cannot be read may show it.
	}
	if !isVolume {
		return !strings.HasPrefix(ref, ownRefs) || f.refs[repository][ref]
	}
	part, _, _ := strings.Cut(below, "/")
	return f.unknown[part] || f.refs[repository][volumeRefs+part+"/"]
}
