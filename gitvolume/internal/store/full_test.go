package store

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// TestAFullDisk is C43 (c), the store's part: what was there stays, and work goes on when
// there is room.
func TestAFullDisk(t *testing.T) {
	mountns.Require(t)
	for name, row := range map[string]struct {
		options string
		fill    func(dir string) error
	}{
		"no block left": {"size=2m", func(dir string) error {
			return fillWith(dir, func(path string) error { return os.WriteFile(path, make([]byte, 64<<10), 0o600) })
		}},
		"no inode left": {"nr_inodes=200", func(dir string) error {
			return fillWith(dir, func(path string) error { return os.WriteFile(path, nil, 0o600) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.onDisk("tmpfs", row.options)
			want := f.volume("v")
			f.volume("gone")
			f.must(f.store.SaveMemory("v", asOf("1"), aMemory()))
			f.commit(f.repository(aURL), VolumeRef("v", AnchorTip))
			filler := filepath.Join(f.dir, checkoutsDir, "filler")
			f.must(os.Mkdir(filler, 0o700))
			f.must(row.fill(filler))

			changed := want
			changed.Staged = true
			f.wants(f.store.Save(changed), unix.ENOSPC)
			f.wants(f.store.Save(aRecord("new")), unix.ENOSPC)
			f.wants(f.store.SaveMemory("v", asOf("2"), aMemory()), unix.ENOSPC)
			if _, err := f.repository(otherURL).Use(t.Context()); err == nil {
				t.Error("a new repository was made")
			}
			f.store.Mark("v")()
			f.must(f.store.Remove("gone")) // Which is what makes room.

			check := func() {
				t.Helper()
				records, problems, err := f.store.All()
				if err != nil || len(problems) != 0 || len(records) != 1 || !reflect.DeepEqual(records[0], want) {
					t.Errorf("All = %+v, %v, %v", records, problems, err)
				}
				f.remembers(asOf("1"))
				if f.glob(volumesDir+"/*/*.next") != 0 {
					t.Error("something half-written is left")
				}
			}
			check()
			f.restart() // It has to open.
			if err := f.store.Recover(t.Context(), noGit{}); err != nil && !errors.Is(err, unix.ENOSPC) || f.glob(asideDir+"/*") != 0 {
				t.Errorf("Recover: %v, and %d set aside", err, f.glob(asideDir+"/*"))
			}
			check()
			f.must(os.RemoveAll(filler))
			f.must(f.store.Save(changed))
			f.commit(f.repository(otherURL), VolumeRef("v", AnchorTip))
			if len(f.refs(f.repository(aURL))) != 1 {
				t.Error("the ref is gone")
			}
		})
	}
}

// fillWith makes files until there is no room.
func fillWith(dir string, file func(path string) error) error {
	for i := range 10_000 {
		if err := file(filepath.Join(dir, string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)))); errors.Is(err, unix.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return errors.New("the disk does not get full")
}
