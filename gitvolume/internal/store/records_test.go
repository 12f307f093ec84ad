package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
)

func TestRecordsOutliveTheProcess(t *testing.T) {
	f := newFixture(t)
	longest := strings.Repeat("v", handle.MaxLength)
	want := []Record{aRecord("a"), fullRecord(), aRecord(longest)}
	for _, r := range want {
		f.must(f.store.Save(aRecord(r.Handle)))
		f.must(f.store.Save(r))
	}
	f.restart()
	records, problems, err := f.store.All()
	if err != nil || len(problems) != 0 || !reflect.DeepEqual(records, want) {
		t.Errorf("All = %+v, %v, %v", records, problems, err)
	}
	_, err = f.store.Load("b")
	f.wants(err, ErrNoRecord)
	_, err = f.store.Load("../a")
	f.wants(err, handle.ErrInvalid)
}

func TestADamagedRecordIsSetAside(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"cut off":     func(path string) error { return os.Truncate(path, 20) },
		"a link":      func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)) },
		"a FIFO":      func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"too long":    func(path string) error { return os.Truncate(path, longestRecord+1) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.volume("v")
			f.must(f.store.Save(aRecord("w")))
			f.must(spoil(filepath.Join(f.dir, volumesDir, "v", recordFile)))
			records, problems, err := f.store.All()
			if err != nil || len(records) != 1 || len(problems) != 1 || problems[0].Volume != "v" || !errors.Is(problems[0].Err, ErrDamagedRecord) {
				t.Fatalf("All = %v, %v, %v", records, problems, err)
			}
			if !strings.Contains(problems[0].Err.Error(), f.dir+"/"+asideDir) || f.glob(asideDir+"/*/"+recordFile) != 1 {
				t.Errorf("%v does not say where it is", problems[0].Err)
			}
			// From now on it is a tree that nothing names.
			_, err = f.store.Load("v")
			f.wants(err, ErrNoRecord)
			if _, problems, _ := f.store.All(); len(problems) != 1 || !errors.Is(problems[0].Err, ErrNoRecord) {
				t.Errorf("problems %v, want the tree without a record", problems)
			}
			if !f.exists(volumesDir, "v", treeName, "file") || f.glob(asideDir+"/*") != 1 {
				t.Error("the tree is gone, or more was set aside")
			}
		})
	}
}

func TestARecordOfALaterReleaseIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.must(f.store.Save(aRecord("v")))
	const text = `{"version": 2, "handle": "v"}`
	f.write(text, volumesDir, "v", recordFile)
	_, err := f.store.Load("v")
	f.wants(err, ErrNewerRecord)
	f.restart()
	if left, err := os.ReadFile(filepath.Join(f.dir, volumesDir, "v", recordFile)); err != nil || string(left) != text {
		t.Errorf("%q, %v", left, err)
	}
}

func TestWhatIsNoVolumeIsAProblem(t *testing.T) {
	f := newFixture(t)
	victim := t.TempDir()
	f.must(os.Symlink(victim, filepath.Join(f.dir, volumesDir, "link")))
	f.write("", volumesDir, "file")
	f.must(os.Mkdir(filepath.Join(f.dir, volumesDir, "No Handle"), 0o700))
	f.restart()
	_, problems, err := f.store.All()
	f.must(err)
	got := map[string]error{}
	for _, problem := range problems {
		got[problem.Volume] = problem.Err
	}
	for volume, want := range map[string]error{"link": storedir.ErrNotADirectory, "file": storedir.ErrNotADirectory, "No Handle": handle.ErrInvalid} {
		f.wants(got[volume], want)
	}
	f.wants(f.store.Save(aRecord("link")), storedir.ErrNotADirectory)
	if entries, err := os.ReadDir(victim); err != nil || len(entries) != 0 {
		t.Errorf("the link was followed: %v, %v", entries, err)
	}
}

func TestRemove(t *testing.T) {
	f := newFixture(t)
	f.volume("with-tree")
	f.must(f.store.Save(aRecord("without")))
	for _, volume := range []string{"with-tree", "without", "without", "never"} {
		f.must(f.store.Remove(volume))
	}
	if f.glob(volumesDir+"/*") != 0 {
		t.Error("something is left of the volumes")
	}
	if f.glob(trashDir+"/now/.*/without/record.json") != 1 || f.glob(trashDir+"/kept/.*/with-tree/tree/file") != 1 {
		t.Error("the volumes are not in their parts of the trash")
	}
	if text := f.log.String(); strings.Count(text, "in the trash") != 1 || !strings.Contains(text, "volume=with-tree") || !strings.Contains(text, "unpushed=false") {
		t.Errorf("logged %q", text)
	}
	f.wants(f.store.Remove("../v"), handle.ErrInvalid)
}

// What somebody takes out of the trash is the volume as it was.
func TestRemovedVolumeComesBackByHand(t *testing.T) {
	f := newFixture(t)
	r := f.volume("v")
	f.must(f.store.Remove("v"))
	found, err := filepath.Glob(filepath.Join(f.dir, trashDir, keptDir, ".*", "v"))
	f.must(err)
	f.must(os.Rename(found[0], filepath.Join(f.dir, volumesDir, "v")))
	f.restart()
	got, err := f.store.Load("v")
	f.must(err)
	if !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, want %+v", got, r)
	}
	f.must(f.store.CheckTree(got))
}

func BenchmarkSave(b *testing.B) {
	s := settings(b.TempDir())
	s.Log = slog.New(slog.DiscardHandler)
	opened, err := Open(s)
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	for b.Loop() {
		if err := opened.Save(fullRecord()); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleVolumeRef() {
	fmt.Println(VolumeRef("notes.example", AnchorTip))
	fmt.Println(RemoteRef("refs/heads/feature/x"))
	// Output:
	// refs/git-csi/volumes/notes.example/tip
	// refs/git-csi/remote/refs%2Fheads%2Ffeature%2Fx
}
