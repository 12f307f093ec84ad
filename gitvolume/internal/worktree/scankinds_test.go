package worktree

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTypeChanges is C30.
func TestTypeChanges(t *testing.T) {
	v := newVolume(t)
	links := map[string]string{"up": "../x", "abs": "/abs/none", "loop": "loop", "self": ".", "dang": "nowhere", "t3": "t2", "long": strings.Repeat("../x/", 800)}
	for name, target := range links {
		symlinkTo(t, target, v.at(name))
	}
	v.write("t1/a", "1")
	v.write("t2", "2")
	v.commit()
	v.equalsGit()
	for name, target := range links {
		if got := v.content(name); got != target {
			t.Errorf("%s leads to %q", name, got)
		}
	}
	v.do(os.Remove(v.at("t1/a")))
	v.do(os.Remove(v.at("t1")))
	symlinkTo(t, "t2", v.at("t1"))
	v.do(os.Remove(v.at("t2")))
	v.write("t2/b", "3")
	v.do(os.Remove(v.at("t3")))
	v.write("t3", "4")
	v.wantsChanges(v.commit(), "t1", "-t1/a", "-t2", "t2/b", "t3")
	v.equalsGit()
	v.wantsRecord(nil)
}

// TestModesAndEmptyDirectories is C31.
func TestModesAndEmptyDirectories(t *testing.T) {
	asRoot(t)
	v := newVolume(t)
	v.write("s", "x")
	mkdirs(t, v.at("e/f"), v.at("g"))
	v.do(unix.Chmod(v.at("g"), 0o2775))
	v.commit()
	v.wantsRecord(map[string]string{"e": "empty", "e/f": "empty", "g": "2775 empty"})

	v.do(os.Chmod(v.at("s"), 0o755))
	v.wantsChanges(v.commit(), "s")
	v.wantsRecord(map[string]string{"e": "empty", "e/f": "empty", "g": "2775 empty"})
	v.do(os.Chmod(v.at("s"), 0o700))
	v.wantsChanges(v.commit())
	v.wantsRecord(map[string]string{"e": "empty", "e/f": "empty", "g": "2775 empty", "s": "0700"})
	v.do(os.Chown(v.at("s"), 1000, 1001))
	v.wantsChanges(v.commit())
	v.wantsRecord(map[string]string{"e": "empty", "e/f": "empty", "g": "2775 empty", "s": "0700 u1000 g1001"})
	v.do(os.Chtimes(v.at("s"), e2t(5), e2t(5)))
	result := v.commit()
	v.wantsChanges(result)
	if len(result.Metadata) != 0 {
		t.Errorf("a touch recorded %v", result.Metadata)
	}
	v.do(unix.Chmod(v.at("s"), 0o4711))
	v.write("g/h", "y")
	v.commit()
	v.wantsRecord(map[string]string{"e": "empty", "e/f": "empty", "g": "2775", "s": "4711 u1000 g1001"})
	v.do(os.Remove(v.at("g/h")))
	v.do(os.Remove(v.at("e/f")))
	v.commit()
	v.wantsRecord(map[string]string{"e": "empty", "g": "2775 empty", "s": "4711 u1000 g1001"})
	v.wants("s")
	v.do(os.RemoveAll(v.at("e")))
	v.do(os.RemoveAll(v.at("g")))
	v.do(os.Remove(v.at("s")))
	v.do(os.Chmod(v.dir, 0o750))
	v.commit()
	v.wantsRecord(map[string]string{".": "0750"})
}

// TestOwnersFollowTheParent has a directory change hands: what is in it did not change,
// but is no longer as a fresh checkout would make it.
func TestOwnersFollowTheParent(t *testing.T) {
	asRoot(t)
	for _, hint := range []struct {
		name            string
		paths, subtrees []string
	}{
		{"everything", nil, []string{"."}},
		{"its path", []string{"d"}, nil},
		{"a path below", []string{"d/x"}, nil},
	} {
		t.Run(hint.name, func(t *testing.T) {
			v := newVolume(t)
			v.write("d/f", "x")
			v.write("d/e/g", "x")
			v.commit()
			v.do(os.Chown(v.at("d"), 7, 8))
			request := v.request()
			request.Paths, request.Subtrees = hint.paths, hint.subtrees
			v.adopt(v.scan(request))
			v.wantsRecord(map[string]string{"d": "u7 g8", "d/f": "u0 g0", "d/e": "u0 g0"})
			v.do(os.Chown(v.at("d/f"), 7, 8))
			v.do(os.Chown(v.at("d"), 0, 0))
			v.commit()
			v.wantsRecord(map[string]string{"d/f": "u7 g8"})
		})
	}
}
