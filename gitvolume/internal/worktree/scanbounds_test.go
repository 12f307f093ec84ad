package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// TestARemovedRoot is no deletion of everything by the application.
func TestARemovedRoot(t *testing.T) {
	v := newVolume(t)
	v.write("f", "1")
	v.write("d/g", "1")
	v.commit()
	v.do(os.RemoveAll(v.dir))
	for _, subtrees := range [][]string{{"."}, {"d"}} {
		r := v.request()
		r.Subtrees = subtrees
		if result, err := v.tree.Scan(t.Context(), r); !errors.Is(err, ErrGone) {
			t.Errorf("looking at %q found %v, error %v", subtrees, result, err)
		}
	}
}

// TestAScanIsCancelled in a directory of many files.
func TestAScanIsCancelled(t *testing.T) {
	v := newVolume(t)
	for i := range 50 {
		v.write(fmt.Sprint("d/", i), fmt.Sprint(i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	blobs := &countingBlobs{Blobs: v.repo, meanwhile: cancel}
	r := v.request()
	r.Blobs = blobs
	if _, err := v.tree.Scan(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if len(blobs.contents) > 1 {
		t.Errorf("read %d files after it was cancelled", len(blobs.contents)-1)
	}
}

// TestADirectoryOfManyNames is looked at in pieces.
func TestADirectoryOfManyNames(t *testing.T) {
	onTmpfs(t)
	v := newVolume(t)
	const many = 2*piece + 3
	at := func(i int) string { return fmt.Sprintf("d/%05d", i) }
	mkdirs(t, v.at("d"))
	for i := range many {
		v.do(os.Symlink(strconv.Itoa(i%7), v.at(at(i))))
	}
	v.commit()
	v.equalsGit()
	for _, i := range []int{0, piece - 1, piece, 2*piece - 1, 2 * piece, many - 1} {
		v.do(os.Remove(v.at(at(i))))
	}
	v.write(at(piece+1)+"-", "new")
	mkdirs(t, v.at(at(piece)))
	v.write(at(piece)+"/x", "new")
	if changed := len(v.commit().Changes); changed != 8 {
		t.Errorf("%d changes", changed)
	}
	v.equalsGit()
	v.wantsChanges(v.commit())
}

// chain makes directories of that name one in the other, each with a file in it now and
// then.
func (v *volume) chain(name string, depth, fileEach int) {
	v.t.Helper()
	at, err := unix.Open(v.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	v.do(err)
	for i := range depth {
		v.do(unix.Mkdirat(at, name, 0o755))
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		v.do(err)
		v.do(unix.Close(at))
		if at = next; i%fileEach != fileEach-1 {
			continue
		}
		file, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_WRONLY, 0o644)
		v.do(err)
		_, err = unix.Write(file, []byte(strconv.Itoa(i)))
		v.do(err)
		v.do(unix.Close(file))
	}
	v.do(unix.Close(at))
}

// heaps measures by how much the heap is larger as each file is stored.
type heaps struct {
	Blobs
	before, most uint64
}

func (h *heaps) Blob(content []byte) (object.ID, error) {
	if now := heap(); now > h.before {
		h.most = max(h.most, now-h.before)
	}
	return h.Blobs.Blob(content)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// allocated is how much memory is taken, freed or not, by what is done.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestADeepTreeOfLongNames takes memory for the names, and not for the path of each
// directory.
func TestADeepTreeOfLongNames(t *testing.T) {
	onTmpfs(t)
	v := newVolume(t)
	v.chain(strings.Repeat("d", maxName), maxDepth, 64)
	blobs := &heaps{Blobs: v.repo, before: heap()}
	r := v.request()
	r.Blobs = blobs
	result := v.adopt(v.scan(r))
	if took := blobs.most; took > 64<<20 {
		t.Errorf("a scan takes %d MiB", took>>20)
	}
	for _, c := range result.Changes {
		if len(c.Path) > metadata.MaxPath {
			t.Errorf("a path of %d bytes is committed", len(c.Path))
		}
	}
	// The name of the file in the fourth makes its path too long.
	if len(result.Changes) != 3 {
		t.Errorf("%d changes", len(result.Changes))
	}
	if len(result.Skipped) != 2 || result.Skipped[0].Reason != Name || result.Skipped[1].Reason != Name {
		t.Errorf("%d are skipped", len(result.Skipped))
	}
	v.wantsChanges(v.commit())

	if took := allocated(func() {
		_, err := v.tree.GiveToGroup(t.Context(), uint32(os.Getgid()), v.memory)
		v.do(err)
	}); took > 64<<20 {
		t.Errorf("to give the tree to a group takes %d MiB", took>>20)
	}
	if took := allocated(func() {
		_, err := v.mover(&intents{}).Resume(t.Context(), newIntent(v.root, v.root))
		v.do(err)
	}); took > 64<<20 {
		t.Errorf("to look for unfinished files takes %d MiB", took>>20)
	}
}

// TestRulesOfManyPartsInADeepTree would have each directory remember how far it is in
// each of many patterns.
func TestRulesOfManyPartsInADeepTree(t *testing.T) {
	onTmpfs(t)
	v := newVolume(t)
	const depth = 150
	pattern := "**/" + strings.Repeat("a/", 100) + "b\n"
	v.write(".gitignore", strings.Repeat(pattern, maxRules/len(pattern)))
	v.write("other/f", "1")
	v.chain("a", depth, 25)
	blobs := &heaps{Blobs: v.repo, before: heap()}
	r := v.request()
	r.Blobs = blobs
	result := v.adopt(v.scan(r))
	if took := blobs.most; took > 2*maxLevels {
		t.Errorf("a scan takes %d MiB", took>>20)
	}
	if len(result.Skipped) != 1 || result.Skipped[0].Reason != Rules {
		t.Errorf("skipped %v", skipped(result))
	}
	if got := changed(result); len(got) < 3 || got[len(got)-1] != "other/f" {
		t.Errorf("changed %q", got)
	}
	v.wantsChanges(v.commit())
	v.write(".gitignore", "")
	v.commit()
	v.equalsGit()
}

// scanningIn makes the test binary scan the tree in that directory, and nothing else, so
// that strace can have its calls fail.
const scanningIn = "LIKEN_TEST_SCANNING_IN"

func scanning(dir string) {
	tree, err := Open(dir)
	if err == nil {
		var result *Result
		result, err = tree.Scan(context.Background(), Request{Subtrees: []string{"."}, Blobs: Hasher{}, Fresh: metadata.Plain()})
		if err == nil {
			fmt.Printf("%q %v", changed(result), skipped(result))
		}
	}
	if err != nil {
		fmt.Println(err)
	}
	os.Exit(0)
}

// TestAnIgnoreFileOnAFailingDisk may name the secrets beside it.
func TestAnIgnoreFileOnAFailingDisk(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d/.gitignore"), "secret\n")
	write(t, filepath.Join(dir, "d/secret"), "secret")
	write(t, filepath.Join(dir, "f"), "1")
	for _, row := range []struct{ failure, want string }{
		{"EIO", `["f"] map[d:` + Rules.String() + `]`},
		{"EACCES", `["d/.gitignore" "d/secret" "f"] map[]`},
		{"ENOMEM", `scan the tree: read a file: cannot allocate memory`},
	} {
		said := strings.TrimSpace(underStrace(t, scanningIn+"="+dir, "-P", filepath.Join(dir, "d/.gitignore"), "-e", "inject=read:error="+row.failure+":when=1"))
		if said != row.want {
			t.Errorf("%s: %s\nwant %s", row.failure, said, row.want)
		}
	}
}
