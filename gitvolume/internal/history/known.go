package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// known tells quickly that an object is probably in the repository. The repository's
// own object database reads the pack directory again for each object it does not
// have, which a batch of new files would pay for each of them.
//
// It may be out of date both ways: an object that another process added is written
// once more, and one that was pruned is found out when it is written after all.
type known struct {
	dir   string // The directory of objects.
	odb   *git.Odb
	packs map[string]bool // By name of the index.
	read  time.Time       // When the pack directory was last changed, as it was read.
}

// openKnown reads which packs there are.
func openKnown(dir string) (*known, error) {
	k := &known{dir: dir}
	if err := k.update(); err != nil {
		return nil, err
	}
	return k, nil
}

// has tells whether the object was in the repository when that was last looked at.
func (k *known) has(id object.ID) bool { return k.odb.Exists(git.NewOidFromBytes(id[:])) }

// update takes up the packs that came and drops those that went.
func (k *known) update() error {
	packDir := filepath.Join(k.dir, "pack")
	info, err := os.Stat(packDir)
	if err != nil {
		return fmt.Errorf("look at the packs: %w", err)
	}
	if k.odb != nil && info.ModTime().Equal(k.read) {
		return nil
	}
	listed, err := os.ReadDir(packDir)
	if err != nil {
		return fmt.Errorf("list the packs: %w", err)
	}
	now := map[string]bool{}
	for _, file := range listed {
		if strings.HasSuffix(file.Name(), ".idx") {
			now[file.Name()] = true
		}
	}
	for name := range k.packs {
		if !now[name] { // A backend cannot be taken out, so all are made anew.
			k.close()
			break
		}
	}
	if k.odb == nil {
		if err := k.open(); err != nil {
			return err
		}
	}
	for name := range now {
		k.add(packDir, name)
	}
	k.read = info.ModTime()
	return nil
}

// open makes the database, with the loose objects alone.
func (k *known) open() error {
	odb, err := git.NewOdb()
	if err != nil {
		return fmt.Errorf("make an object database: %w", err)
	}
	loose, err := git.NewOdbBackendLoose(k.dir, -1, false, 0o700, 0o400)
	if err == nil {
		err = odb.AddBackend(loose, 1)
	}
	if err != nil {
		odb.Free()
		return fmt.Errorf("open the loose objects: %w", err)
	}
	k.odb, k.packs = odb, map[string]bool{}
	return nil
}

// add takes up a pack. One that cannot be opened, as an index emptied by a power cut,
// knows no objects: they are written again.
func (k *known) add(dir, name string) {
	if k.packs[name] {
		return
	}
	k.packs[name] = true
	backend, err := git.NewOdbBackendOnePack(filepath.Join(dir, name))
	if err != nil {
		return
	}
	// On an error the backend has been freed, and the pack is one that was not taken up.
	_ = k.odb.AddBackend(backend, 2)
}

// close frees the database.
func (k *known) close() {
	if k.odb != nil {
		k.odb.Free()
	}
	k.odb, k.packs, k.read = nil, nil, time.Time{}
}
