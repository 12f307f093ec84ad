package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestIgnoreFiles is C32.
func TestIgnoreFiles(t *testing.T) {
	v := newVolume(t)
	v.write(".gitignore", "*.log\n!dir/*\nbuild/\n/top\nfoo\n!foo/keep\nbar/*\n!bar/keep\n")
	for _, path := range []string{"dir/a.log", "dir/sub/b.log", "build/o", "x/build/o", "top", "x/top/f", "foo/keep", "bar/keep", "bar/drop", "#hash"} {
		v.write(path, "")
	}
	symlinkTo(t, "dir", v.at("buildlink"))
	mkdirs(t, v.at("l"))
	symlinkTo(t, "../dir", v.at("l/build"))
	v.commit()
	v.wants("#hash", ".gitignore", "bar/keep", "buildlink", "dir/a.log", "l/build", "x/top/f")
	v.equalsGit()

	v.write("f.txt", "x")
	v.commit()
	v.gitAdds()
	v.write(".gitignore", "f.txt\nnew/\n")
	v.write("f.txt", "xy")
	v.write("new/x", "")
	v.commit()
	v.equalsGit()
	if got := v.content("f.txt"); got != "xy" {
		t.Errorf("a tracked file that is ignored: committed %q", got)
	}
	v.do(os.Remove(v.at("f.txt")))
	v.commit()
	v.equalsGit()
}

// TestIgnoredByTheClass is C32 with the class's list.
func TestIgnoredByTheClass(t *testing.T) {
	v := newVolume(t)
	v.class = []string{"*.tmp", "/cache/", "!keep.tmp"}
	for _, path := range []string{"a.tmp", "keep.tmp", "cache/x", "sub/cache/y", "sub/z.tmp"} {
		v.write(path, "")
	}
	v.write("sub/.gitignore", "!z.tmp\n")
	v.commit()
	v.wants("keep.tmp", "sub/.gitignore", "sub/cache/y", "sub/z.tmp")
	v.equalsGit()
}

// TestAnIgnoredDirectoryIsNotRemembered also has rules come and go.
func TestAnIgnoredDirectoryIsNotRemembered(t *testing.T) {
	v := newVolume(t)
	v.write("d/f", "x")
	mkdirs(t, v.at("empty"), v.at("cache/deep"))
	v.write("cache/x", "x")
	v.write(".gitignore", "/cache/\n")
	v.commit()
	v.wantsRecord(map[string]string{"empty": "empty"})
	for path := range v.memory.Directories(".") {
		if strings.HasPrefix(path, "cache") {
			t.Errorf("%q is remembered", path)
		}
	}
	v.write(".gitignore", "/cache/deep\n/empty\n")
	request := v.request()
	request.Paths, request.Subtrees = []string{".gitignore"}, nil
	v.adopt(v.scan(request))
	v.equalsGit()
	v.wants(".gitignore", "cache/x", "d/f")
	v.wantsRecord(nil)
	v.do(os.Remove(v.at(".gitignore")))
	request.Memory = v.memory
	v.adopt(v.scan(request))
	v.wantsRecord(map[string]string{"empty": "empty", "cache/deep": "empty"})
}

func TestIgnoreFilesThatAreNone(t *testing.T) {
	v := newVolume(t)
	outside := filepath.Join(filepath.Dir(v.dir), "outside")
	write(t, outside, "*\n")
	symlinkTo(t, outside, v.at(".gitignore"))
	mkdirs(t, v.at("d/.gitignore"))
	v.write("d/f", "x")
	v.write("e/f", "x")
	v.do(unix.Mkfifo(v.at("e/.gitignore"), 0o644))
	result := v.commit()
	v.wants(".gitignore", "d/f", "e/f")
	v.wantsSkips(result, map[string]Reason{"e/.gitignore": Kind})
}

// TestAnIgnoredDirectoryLosesItsLastFile that is tracked, and is no longer remembered.
func TestAnIgnoredDirectoryLosesItsLastFile(t *testing.T) {
	v := newVolume(t)
	v.write("d/e/f", "x")
	mkdirs(t, v.at("d/empty"))
	v.commit()
	v.wantsRecord(map[string]string{"d/empty": "empty"})
	v.write(".gitignore", "/d/\n")
	v.do(os.Remove(v.at("d/e/f")))
	v.commit()
	v.wantsRecord(nil)
	if result := v.commit(); len(result.Metadata) != 0 {
		t.Errorf("recorded %v", result.Metadata)
	}
}

// TestIgnoreFilesThatAreTooLarge name what is not to be committed, so nothing new is.
func TestIgnoreFilesThatAreTooLarge(t *testing.T) {
	v := newVolume(t)
	secrets := "secret\n"
	large := secrets + strings.Repeat("#\n", maxRules/2)
	v.write("d/tracked", "1")
	v.write("d/e/tracked", "1")
	v.write("other", "1")
	v.commit()
	v.write("d/.gitignore", large)
	v.write("d/e/.gitignore", "!*\n!*/\n")
	for _, path := range []string{"d/secret", "d/new", "d/e/secret", "d/e/new", "d/f/secret", "d/f/new", "other2"} {
		v.write(path, "x")
	}
	mkdirs(t, v.at("d/empty"))
	v.write("d/tracked", "2")
	v.do(os.Remove(v.at("d/e/tracked")))
	result := v.commit()
	v.wantsSkips(result, map[string]Reason{"d": Rules})
	v.wantsChanges(result, "-d/e/tracked", "d/tracked", "other2")
	v.wantsRecord(nil)

	// By the paths that changed it is the same, and it is reported once.
	request := v.request()
	request.Paths, request.Subtrees = []string{"d/new2", "d/.gitignore", "d/e/new"}, nil
	v.write("d/new2", "x")
	for _, r := range []Request{request, v.request()} {
		result = v.scan(r)
		v.wantsChanges(result)
		v.wantsSkips(result, nil)
	}

	// It fits.
	v.write("d/.gitignore", secrets)
	v.write("d/e/.gitignore", "new\n")
	request.Paths = []string{"d/.gitignore"}
	request.Memory = v.memory
	v.adopt(v.scan(request))
	v.wants("d/.gitignore", "d/e/.gitignore", "d/f/new", "d/new", "d/new2", "d/tracked", "other", "other2")
	v.wantsRecord(map[string]string{"d/empty": "empty"})
	v.equalsGit()

	// What is in force below a directory is too much together with the file above.
	half := secrets + strings.Repeat("#\n", maxRules/4-len(secrets))
	v.write(".gitignore", half)
	v.write("d/.gitignore", half)
	v.write("d/e/.gitignore", strings.Repeat("#", 3*len(secrets)))
	v.write("d/e/new3", "x")
	v.write("d/new3", "x")
	result = v.commit()
	v.wantsSkips(result, map[string]Reason{"d/e": Rules})
	v.wantsChanges(result, ".gitignore", "d/.gitignore", "d/e/.gitignore", "d/new3")
	v.write(".gitignore", "")
	request.Paths, request.Memory = []string{".gitignore"}, v.memory
	v.wantsChanges(v.scan(request), ".gitignore", "d/e/new", "d/e/new3")

	// That of the root closes the whole tree.
	v.write(".gitignore", large)
	v.write("new4", "x")
	v.write("other", "2")
	result = v.commit()
	v.wantsSkips(result, map[string]Reason{".": Rules})
	v.wantsChanges(result, ".gitignore", "other")
}
