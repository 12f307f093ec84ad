package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// asRoot skips a test of what only root can set up: in a user namespace of an ordinary
// user there is but one id, and no device can be made.
func asRoot(t *testing.T) {
	t.Helper()
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err == nil && !strings.Contains(string(ids), "4294967295") || os.Getuid() != 0 {
		t.Skip("needs root")
	}
}

// TestKindsThatAreNoContent is C19.
func TestKindsThatAreNoContent(t *testing.T) {
	asRoot(t)
	v := newVolume(t)
	v.do(unix.Mkfifo(v.at("p"), 0o644))
	v.do(unix.Mknod(v.at("n"), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3))))
	v.do(unix.Mknod(v.at("s"), unix.S_IFSOCK|0o644, 0))
	v.write("ok", "a")
	v.write("zero", "b")
	v.write("d/f", "c")
	v.do(os.Chmod(v.at("zero"), 0))
	v.do(os.Chmod(v.at("d"), 0))
	v.write("r", "x")
	result := v.commit()
	v.wants("ok", "zero", "d/f", "r")
	v.wantsSkips(result, map[string]Reason{"p": Kind, "n": Kind, "s": Kind})
	v.wantsRecord(map[string]string{"zero": "0000", "d": "0000"})

	// A tracked path that becomes a FIFO was deleted; what was named once is not named again.
	v.do(os.Remove(v.at("r")))
	v.do(unix.Mkfifo(v.at("r"), 0o644))
	result = v.commit()
	v.wantsChanges(result, "-r")
	v.wantsSkips(result, map[string]Reason{"r": Kind})
	result = v.commit()
	v.wantsChanges(result)
	v.wantsSkips(result, nil)
	v.do(os.Remove(v.at("r")))
	v.write("r", "x")
	v.wantsChanges(v.commit(), "r")
	v.do(os.Chmod(v.at("d"), 0o755))
}

// TestWhatMayNotBeRead is C19 as an ordinary user.
func TestWhatMayNotBeRead(t *testing.T) {
	asRoot(t)
	v := newVolume(t)
	v.write("ok", "a")
	v.write("zero", "b")
	v.write("was", "c")
	v.write("d/f", "d")
	v.write("e/was", "e")
	v.do(os.Chmod(v.at("zero"), 0))
	v.do(os.Chmod(v.at("d"), 0))
	asUser := func() (result *Result) {
		done := make(chan error)
		// The thread is not unlocked, so it ends with its goroutine.
		go func() {
			var err error
			defer func() { done <- err }()
			lockThread()
			if err = unix.Setfsuid(12345); err != nil {
				return
			}
			request := v.request()
			request.Blobs = Hasher{}
			result, err = v.tree.Scan(t.Context(), request)
		}()
		v.do(<-done)
		return result
	}
	v.wantsSkips(asUser(), map[string]Reason{"zero": Unreadable, "d": Unreadable})
	v.wantsChanges(asUser(), "e/was", "ok", "was")

	// What is tracked stays.
	v.commit()
	v.write("was", "changed")
	v.do(os.Chmod(v.at("was"), 0))
	v.do(os.Chmod(v.at("e"), 0))
	result := asUser()
	// "zero" is racy, so it has to be read.
	v.wantsSkips(result, map[string]Reason{"d": Unreadable, "e": Unreadable, "was": Unreadable, "zero": Unreadable})
	v.wantsChanges(result)
	// It is named once, and read when that can be.
	v.memory = result.Memory
	v.wantsSkips(asUser(), nil)
	v.wantsChanges(v.commit(), "was")
	v.do(os.Chmod(v.at("d"), 0o755))
	v.do(os.Chmod(v.at("e"), 0o755))
}

// TestSameSizeSameTime is C20 (c).
func TestSameSizeSameTime(t *testing.T) {
	v := newVolume(t)
	v.write("int", "0")
	v.commit()
	var stat unix.Stat_t
	v.do(unix.Stat(v.at("int"), &stat))
	v.write("int", "1")
	v.do(unix.UtimesNanoAt(unix.AT_FDCWD, v.at("int"), []unix.Timespec{stat.Atim, stat.Mtim}, 0))
	v.wantsChanges(v.commit(), "int")
	if got := v.content("int"); got != "1" {
		t.Errorf("committed %q", got)
	}
}

// TestARacyFileIsReadOnceMore has a file change without any time stamp showing it.
func TestARacyFileIsReadOnceMore(t *testing.T) {
	v := newVolume(t)
	v.write("f", "0")
	v.commit()
	if !v.memory.Entry("f").Racy {
		t.Fatal("a file that was just written is not racy")
	}
	v.write("f", "1")
	// As if the clock had stood still.
	var stat unix.Stat_t
	v.do(unix.Stat(v.at("f"), &stat))
	e := v.memory.Entry("f")
	e.Stat.Modified, e.Stat.Changed = unix.TimespecToNsec(stat.Mtim), unix.TimespecToNsec(stat.Ctim)
	v.memory = v.memory.With([]Edit{{"f", e}})
	v.wantsChanges(v.commit(), "f")

	e = v.memory.Entry("f")
	e.Racy = false
	v.memory = v.memory.With([]Edit{{"f", e}})
	reads := &countingBlobs{Blobs: Hasher{}}
	request := v.request()
	request.Blobs = reads
	v.do(os.Chtimes(v.at("f"), e2t(1), e2t(1))) // Another ctime, as every change makes.
	v.wantsChanges(v.scan(request))
	if len(reads.contents) != 0 {
		t.Errorf("stored what was stored: %q", reads.contents)
	}
}

// TestEditsWhileNobodyLooked is C21.
func TestEditsWhileNobodyLooked(t *testing.T) {
	v := newVolume(t)
	v.write("a", "1")
	v.write("c", "1")
	v.commit()
	var text strings.Builder
	_, err := v.memory.WriteTo(&text)
	v.do(err)

	v.write("a", "2")
	v.write("b", "n")
	v.do(os.Remove(v.at("c")))
	v.do(os.Mkdir(v.at("e"), 0o755))
	v.do(os.Chmod(v.at("a"), 0o700))
	v.memory, err = ReadMemory(strings.NewReader(text.String()))
	v.do(err)
	v.wantsChanges(v.commit(), "a", "b", "-c")
	v.wantsRecord(map[string]string{"a": "0700", "e": "empty"})

	v.write(".a.swp", "3")
	v.do(os.Rename(v.at(".a.swp"), v.at("a")))
	v.do(os.Link(v.at("a"), v.at("a.lnk")))
	v.do(os.Remove(v.at("a.lnk")))
	v.wantsChanges(v.commit(), "a")
	if got := v.content("a"); got != "3" {
		t.Errorf("committed %q", got)
	}
}

// TestNames is C26.
func TestNames(t *testing.T) {
	v := newVolume(t)
	names := []string{
		"-rf", "--upload-pack=x", "nl\nx", "tab\tx", "q\"u'o", `back\slash`, " lead", "trail ", "dot.", "*", "[a]",
		":(top)x", "a -> b", "#h", "!b", "~", "\r", "$(id)", "-d/-f", "A", "a", strings.Repeat("n", 255), "\xff\xfe",
	}
	for i, name := range names {
		v.write(name, strings.Repeat("x", i))
	}
	v.commit()
	v.wants(names...)
	v.equalsGit()
	for _, name := range names[:len(names)/2] {
		v.do(os.Remove(v.at(name)))
	}
	v.commit()
	v.wants(names[len(names)/2:]...)
	v.equalsGit()
}

// TestNamesThatGitCannotHold is C28.
func TestNamesThatGitCannotHold(t *testing.T) {
	v := newVolume(t)
	for _, path := range []string{
		".GIT/x", ".git./x", ".git /x", "git~1/x", "sub/GIT~1", "\x2eg\xe2\x80\x8cit/x", "sub/.git/hooks/post-checkout", "sub/ok", "ok", "x/.Git",
	} {
		v.write(path, "x")
	}
	symlinkTo(t, "x", v.at("x/.gitmodules"))
	v.write(".gitmodules", "path = ../../x")
	want := map[string]Reason{
		".GIT": Name, ".git.": Name, ".git ": Name, "git~1": Name, "sub/GIT~1": Name, ".g\xe2\x80\x8cit": Name,
		"sub/.git": Name, "x/.Git": Name, "x/.gitmodules": Name,
	}
	result := v.commit()
	v.wants("ok", "sub/ok", ".gitmodules")
	v.wantsSkips(result, want)
	v.wantsRecord(map[string]string{"x": "empty"})
	v.wantsSkips(v.commit(), nil)
	left := 0
	for range v.memory.Skipped() {
		left++
	}
	if left != len(want) {
		t.Errorf("%d paths are known to be left out, want %d", left, len(want))
	}
}

// TestAttributesChangeNothing is C34.
func TestAttributesChangeNothing(t *testing.T) {
	v := newVolume(t)
	v.write("crlf.txt", "a\r\nb\r\n")
	v.write(".gitattributes", "* text=auto\n*.id ident\n*.lfs filter=lfs diff=lfs merge=lfs -text\n*.exp export-ignore\n*.u16 working-tree-encoding=UTF-16LE eol=lf\n")
	v.write("k.id", "$Id$")
	v.commit()
	for range 3 {
		v.wantsChanges(v.commit())
	}
	v.write("new.txt", "c\r\n")
	v.wantsChanges(v.commit(), "new.txt")
	v.wantsChanges(v.commit())
	if v.content("new.txt") != "c\r\n" || v.content("crlf.txt") != "a\r\nb\r\n" {
		t.Error("content was converted")
	}
}

// TestSizes is C35.
func TestSizes(t *testing.T) {
	v := newVolume(t)
	v.limit = 1 << 20
	v.write("eq", strings.Repeat("x", 1<<20))
	v.write("plus", strings.Repeat("x", 1<<20+1))
	v.write("sparse", "")
	v.do(os.Truncate(v.at("sparse"), 1<<40))
	v.write("small", "a")
	result := v.commit()
	v.wants("eq", "small")
	v.wantsSkips(result, map[string]Reason{"plus": Size, "sparse": Size})
	v.wantsSkips(v.commit(), nil)

	v.do(os.Truncate(v.at("plus"), 10))
	v.wantsChanges(v.commit(), "plus")
	v.write("small", strings.Repeat("y", 2<<20))
	result = v.commit()
	v.wantsChanges(result)
	v.wantsSkips(result, map[string]Reason{"small": Size})
	if got := v.content("small"); got != "a" {
		t.Errorf("committed %.20q", got)
	}
	result = v.commit()
	v.wantsSkips(result, nil)
	v.do(os.Remove(v.at("sparse")))
	v.wantsChanges(v.commit())

	// Another class: what is within its limit now is committed, and what was above it
	// when it was committed stays.
	v.limit = 4 << 20
	v.wantsChanges(v.commit(), "small")
	v.limit = 10
	result = v.commit()
	v.wantsChanges(result)
	v.wantsSkips(result, nil)
	v.write("small", strings.Repeat("z", 3<<20))
	v.wantsSkips(v.commit(), map[string]Reason{"small": Size})
	v.do(os.Remove(v.at("small")))
	v.wantsChanges(v.commit(), "-small")
	v.limit = 0
	v.write("big", strings.Repeat("0123456789", 1<<20))
	v.commit()
	v.wants("eq", "plus", "big")
	v.equalsGit()
}

func TestMountsAreLeftOut(t *testing.T) {
	mountns.Require(t)
	v := newVolume(t)
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "canary"), "secret")
	mkdirs(t, v.at("empty"))
	for _, path := range []string{"d/f", "file", "other"} {
		v.write(path, "x")
	}
	v.commit()
	over := map[string]string{"d": elsewhere, "empty": elsewhere, "file": elsewhere + "/canary"}
	for target, source := range over {
		v.do(unix.Mount(source, v.at(target), "", unix.MS_BIND, ""))
	}
	result := v.commit()
	v.wantsSkips(result, map[string]Reason{"d": Mount, "empty": Mount, "file": Mount})
	v.wantsChanges(result)
	v.wantsSkips(v.commit(), nil)
	for target := range over {
		v.do(unix.Unmount(v.at(target), 0))
	}
	v.write("d/g", "x")
	v.wantsChanges(v.commit(), "d/g")
	v.wantsRecord(map[string]string{"empty": "empty"})
}

func TestADeepTree(t *testing.T) {
	onTmpfs(t)
	v := newVolume(t)
	const depth = maxDepth + 20
	at, err := unix.Open(v.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	v.do(err)
	for range depth {
		v.do(unix.Mkdirat(at, "d", 0o755))
		file, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_WRONLY, 0o644)
		v.do(err)
		v.do(unix.Close(file))
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		v.do(err)
		v.do(unix.Close(at))
		at = next
	}
	v.do(unix.Close(at))
	result := v.commit()
	if len(result.Changes) != maxDepth {
		t.Errorf("%d changes", len(result.Changes))
	}
	// A file and a directory in the lowest one.
	if len(result.Skipped) != 2 || result.Skipped[0].Reason != Name || result.Skipped[1].Reason != Name {
		t.Errorf("%d are skipped", len(result.Skipped))
	}
	v.wantsChanges(v.commit())
}

// TestUnfinishedFilesOfTheDriver are left where they are, and nobody is told.
func TestUnfinishedFilesOfTheDriver(t *testing.T) {
	v := newVolume(t)
	for _, path := range []string{".token-1", "d/.token-2", "d/.other-3", ".token-d/f"} {
		v.write(path, "x")
	}
	request := v.request()
	request.Own = func(name string) bool { return strings.HasPrefix(name, ".token-") }
	result := v.adopt(v.scan(request))
	v.wants("d/.other-3")
	if len(result.Skipped)+len(result.Waiting) != 0 || !slices.Equal(result.Found, []string{"d", "d/.other-3"}) {
		t.Errorf("skipped %v, waiting for %q, found %q", result.Skipped, result.Waiting, result.Found)
	}
}

// TestNestedRepositories is SPEC 3.7: their files are ordinary ones.
func TestNestedRepositories(t *testing.T) {
	v := newVolume(t)
	v.write("n/.git/HEAD", "ref: refs/heads/main")
	v.write("n/f", "x")
	v.write("w/.git", "gitdir: /nowhere")
	v.write("w/f", "x")
	v.wantsSkips(v.commit(), map[string]Reason{"n/.git": Name, "w/.git": Name})
	v.wants("n/f", "w/f")
}

func TestPathsThatAreNone(t *testing.T) {
	v := newVolume(t)
	v.write("f", "x")
	v.commit()
	for _, path := range []string{"..", "a/../b", "", "/", "a\x00"} {
		request := v.request()
		request.Paths, request.Subtrees = []string{path}, nil
		if _, err := v.tree.Scan(t.Context(), request); !errors.Is(err, ErrName) {
			t.Errorf("path %q: %v", path, err)
		}
	}
	if got := slices.Collect(func(yield func(string) bool) {
		for path := range v.memory.Directories(".") {
			yield(path)
		}
	}); !slices.Equal(got, []string{"."}) {
		t.Errorf("directories %q", got)
	}
}
