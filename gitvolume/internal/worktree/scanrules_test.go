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
	v.write("large/.gitignore", strings.Repeat("*\n", maxRules/2+1))
	v.write("large/f", "x")
	result := v.commit()
	v.wants(".gitignore", "d/f", "e/f", "large/.gitignore", "large/f")
	v.wantsSkips(result, map[string]Reason{"e/.gitignore": Kind, "large": Rules})
	v.wantsSkips(v.commit(), nil)
	v.write("large/.gitignore", "*\n")
	v.write("large/g", "x")
	v.wantsChanges(v.commit(), "large/.gitignore")
}
