package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// known tells quickly that an object is probably in the repository. libgit2's object
// database reads the pack directory again for each object it does not have, which a batch
// of new files would pay for each of them, and looks at every pack twice.
//
// It may be out of date both ways: an object that another process added is written
// once more, and one that was pruned is found out when it is written after all.
type known struct {
	dir   string // The directory of objects.
	packs map[string]idIndex
	read  time.Time // When the pack directory was last changed, as it was read.
}

// openKnown reads which packs there are.
func openKnown(dir string) (*known, error) {
	k := &known{dir: dir, packs: map[string]idIndex{}}
	if err := k.update(); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// has tells whether the object was in the repository when that was last looked at.
func (k *known) has(id object.ID) bool {
	for _, pack := range k.packs {
		if pack.has(id) {
			return true
		}
	}
	name := id.String()
	_, err := os.Lstat(filepath.Join(k.dir, name[:2], name[2:]))
	return err == nil
}

// update takes up the packs that came and drops those that went.
func (k *known) update() error {
	packDir := filepath.Join(k.dir, "pack")
	info, err := os.Stat(packDir)
	if err != nil {
		return fmt.Errorf("look at the packs: %w", err)
	}
	if info.ModTime().Equal(k.read) {
		return nil
	}
	listed, err := os.ReadDir(packDir)
	if err != nil {
		return fmt.Errorf("list the packs: %w", err)
	}
	gone := k.packs
	k.packs = make(map[string]idIndex, len(listed)/2)
	for _, file := range listed {
		name := file.Name()
		if !strings.HasSuffix(name, ".idx") {
			continue
		}
		pack, found := gone[name]
		if !found {
			pack = openIDs(filepath.Join(packDir, name))
		}
		k.packs[name] = pack
		delete(gone, name)
	}
	for _, pack := range gone {
		pack.close()
	}
	k.read = info.ModTime()
	return nil
}

// close gives back what the packs hold.
func (k *known) close() {
	for _, pack := range k.packs {
		pack.close()
	}
	k.packs, k.read = nil, time.Time{}
}
