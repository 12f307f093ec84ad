package worktree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/metadata"
)

// replayOf is a replay of the volume's record.
func (v *volume) replayOf() Replay {
	r := v.request()
	return Replay{Memory: v.memory, Record: v.record, Fresh: r.Fresh, Root: r.Root}
}

// canGive tells whether files can be given to other users.
func canGive(t testing.TB) bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "")
	return os.Chown(path, 1000, 4321) == nil
}

// shown is mode, owner and group of a path.
func (v *volume) shown(path string) string {
	v.t.Helper()
	var stat unix.Stat_t
	v.do(unix.Lstat(v.at(path), &stat))
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		stat.Mode = 0
	}
	return fmt.Sprintf("%o %d:%d", stat.Mode&0o7777, stat.Uid, stat.Gid)
}

// shownAll is that of everything.
func (v *volume) shownAll() map[string]string {
	v.t.Helper()
	all := map[string]string{}
	v.do(filepath.WalkDir(v.dir, func(path string, _ fs.DirEntry, err error) error {
		if name, is := strings.CutPrefix(path, v.dir+"/"); is && err == nil {
			all[name] = v.shown(name)
		}
		return err
	}))
	return all
}

func (v *volume) setEntry(path string, entry metadata.Entry) {
	v.t.Helper()
	record, err := v.record.Apply(metadata.Delta{path: entry})
	v.do(err)
	v.record = record
}

// TestReplayOnAnotherNode is C31: what a scan records there comes back here.
func TestReplayOnAnotherNode(t *testing.T) {
	there := newVolume(t)
	there.write("s", "x")
	there.write("sticky/f", "x")
	there.write("mine/deep/f", "x")
	there.write("mine/other", "x")
	mkdirs(t, there.at("e/f"), there.at("g"))
	symlinkTo(t, "/nowhere", there.at("l"))
	owner := func(path string, uid, gid int) {
		if canGive(t) {
			there.do(os.Lchown(there.at(path), uid, gid))
		}
	}
	owner("s", 1000, 1001)
	owner("l", 1000, 0)
	for _, path := range []string{"mine", "mine/deep", "mine/deep/f"} {
		owner(path, 1234, 5678)
	}
	there.do(unix.Chmod(there.at("s"), 0o6751))
	there.do(unix.Chmod(there.at("g"), 0o2775))
	there.do(unix.Chmod(there.at("sticky"), 0o1777))
	there.do(unix.Chmod(there.at("mine/other"), 0o600))
	there.commit()

	here := newVolume(t)
	here.repo, here.record = there.repo, there.record
	moved, err := here.mover(&intents{}).Move(t.Context(), here.root, there.root)
	here.do(err)
	here.root, here.memory = there.root, moved.Memory
	for range 2 { // Again does no harm.
		here.memory, err = here.tree.ReplayAll(t.Context(), here.replayOf())
		here.do(err)
		if got, want := here.shownAll(), there.shownAll(); !equalMaps(got, want) {
			t.Errorf("here\n%v\nthere\n%v", got, want)
		}
	}
	result := here.scan(here.request())
	if len(result.Changes)+len(result.Metadata)+len(result.Found) > 0 {
		t.Errorf("a scan after: %+v, %v, found %q", result.Changes, result.Metadata, result.Found)
	}
}

func equalMaps(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return true
}

func TestReplayOfPaths(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"a": "1", "b": "1", "d/f": "1", "gone": "1", "link": "1", "kind": "1", "changed": "1"})
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, "x")
	v.do(os.Chmod(outside, 0o644))
	private := metadata.Entry{Kind: metadata.File, Mode: metadata.Set(0o600)}
	for _, path := range []string{"a", "b", "gone", "link", "kind", "changed", "d/f"} {
		v.setEntry(path, private)
	}
	v.setEntry("empty/dir", metadata.Entry{Kind: metadata.Empty, Mode: metadata.Set(0o700)})
	v.setEntry("empty/other", metadata.Entry{Kind: metadata.Empty})
	v.setEntry(".git/hooks", metadata.Entry{Kind: metadata.Empty})
	v.do(os.Remove(v.at("gone")))
	v.do(os.Remove(v.at("link")))
	symlinkTo(t, outside, v.at("link"))
	v.do(os.Remove(v.at("kind")))
	mkdirs(t, v.at("kind"))
	v.do(os.Chmod(v.at("changed"), 0o640))
	v.do(os.Rename(v.at("d"), v.at("e")))
	symlinkTo(t, "e", v.at("d"))
	memory, err := v.tree.ReplayPaths(t.Context(), v.replayOf(), []string{"a", "gone", "link", "kind", "changed", "d/f", "empty/dir", ".git/hooks", "never/there"})
	v.do(err)
	ids := fmt.Sprintf(" %d:%d", os.Getuid(), os.Getgid())
	for path, want := range map[string]string{
		"a": "600", "b": "644", "kind": "755", "changed": "640", "e/f": "644", "empty": "755", "empty/dir": "700",
	} {
		if got := v.shown(path); got != want+ids {
			t.Errorf("%q is %s, want %s", path, got, want+ids)
		}
	}
	if info := must(os.Stat(outside)); info.Mode().Perm() != 0o644 {
		t.Error("a link was followed")
	}
	for _, path := range []string{".git", "empty/other", "gone", "never"} {
		if _, err := os.Lstat(v.at(path)); err == nil {
			t.Errorf("%q was made", path)
		}
	}
	v.memory = memory
	r := v.request()
	r.Subtrees, r.Paths = nil, []string{"a", "empty"}
	for path := range v.scan(r).Metadata {
		if path == "a" || path == "b" || strings.HasPrefix(path, "empty") {
			t.Errorf("a scan after takes %q for changed", path)
		}
	}
	for _, path := range []string{"", "../x", "a/../b", "/a"} {
		if _, err := v.tree.ReplayPaths(t.Context(), v.replayOf(), []string{path}); err == nil {
			t.Errorf("%q was replayed", path)
		}
	}
}

// TestReplayOfADirectorysOwner has what is in a directory follow it.
func TestReplayOfADirectorysOwner(t *testing.T) {
	if !canGive(t) {
		t.Skip("only root can give files away, and not in a user namespace that has one user")
	}
	v := newVolume(t)
	v.start(upstream{"d/f": "1", "d/e/g": "1", "d/own": "1", "other": "1"})
	v.setEntry("d", metadata.Entry{Kind: metadata.Directory, Owner: metadata.Set(1000), Group: metadata.Set(1001)})
	v.setEntry("d/own", metadata.Entry{Kind: metadata.File, Owner: metadata.Set(0)})
	memory, err := v.tree.ReplayPaths(t.Context(), v.replayOf(), []string{"d"})
	v.do(err)
	want := map[string]string{
		"d": "755 1000:1001", "d/f": "644 1000:1001", "d/e": "755 1000:1001", "d/e/g": "644 1000:1001",
		"d/own": "644 0:1001", "other": "644 0:0",
	}
	if got := v.shownAll(); !equalMaps(got, want) {
		t.Errorf("%v", got)
	}
	v.memory = memory
	if result := v.scan(v.request()); len(result.Metadata) > 0 {
		t.Errorf("a scan after: %v", result.Metadata)
	}
}

func TestReplayAsTheApplicationRemovedAnEmptyDirectory(t *testing.T) {
	v := newVolume(t)
	mkdirs(t, v.at("e"))
	v.commit()
	v.do(os.Remove(v.at("e")))
	_, err := v.tree.ReplayPaths(t.Context(), v.replayOf(), []string{"e"})
	v.do(err)
	v.holds(upstream{})
}

func TestGroup(t *testing.T) {
	group := os.Getgid()
	if canGive(t) {
		group = 4321
	}
	v := newVolume(t)
	v.write("f", "1")
	v.write("x", "1")
	v.write("d/private", "1")
	v.write("d/set", "1")
	symlinkTo(t, "/nowhere", v.at("l"))
	v.do(unix.Mkfifo(v.at("fifo"), 0o600))
	v.do(os.Chmod(v.at("x"), 0o700))
	v.do(os.Chmod(v.at("d/private"), 0o600))
	v.do(unix.Chmod(v.at("d/set"), 0o4755))
	v.commit()
	record := v.record
	memory, err := v.tree.GiveToGroup(t.Context(), uint32(group), v.memory)
	v.do(err)
	id := fmt.Sprintf(" %d:%d", os.Getuid(), group)
	want := map[string]string{
		"f": "664" + id, "x": "770" + id, "d": "2775" + id, "d/private": "660" + id, "d/set": "4775" + id, "l": "0" + id, "fifo": "660" + id,
	}
	if got := v.shownAll(); !equalMaps(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	var root unix.Stat_t
	v.do(unix.Stat(v.dir, &root))
	if root.Mode&0o7777 != 0o2777 || int(root.Gid) != group {
		t.Errorf("the root has mode %o and group %d", root.Mode, root.Gid)
	}
	v.memory = memory
	r := v.request()
	r.Fresh = GroupFresh()
	r.Root = metadata.Seen{Kind: metadata.Directory, Mode: 0o2777, Owner: root.Uid, Group: root.Gid}
	result := v.scan(r)
	if len(result.Changes)+len(result.Metadata) > 0 {
		t.Errorf("a scan after: %+v, %v, recorded before %v", result.Changes, result.Metadata, record)
	}
	// Once more nothing is looked at.
	v.do(os.Chmod(v.at("f"), 0o600))
	again, err := v.tree.GiveToGroup(t.Context(), uint32(group), memory)
	v.do(err)
	if again != memory || v.shown("f") != "600"+id {
		t.Error("it was done again")
	}
}

// TestNewFilesOfAGroupsTree has a move make what the group may write.
func TestNewFilesOfAGroupsTree(t *testing.T) {
	v := newVolume(t)
	group := os.Getgid()
	if canGive(t) {
		group = 4321
	}
	memory, err := v.tree.GiveToGroup(t.Context(), uint32(group), v.memory)
	v.do(err)
	m := v.mover(&intents{})
	m.Memory, m.Fresh = memory, GroupFresh()
	_, err = m.Move(t.Context(), v.root, v.treeOf(upstream{"f": "1", "d/x*": "1", "l@": "x"}))
	v.do(err)
	id := fmt.Sprintf(" %d:%d", os.Getuid(), group)
	if got, want := v.shownAll(), map[string]string{"f": "664" + id, "d": "2775" + id, "d/x": "775" + id, "l": "0" + id}; !equalMaps(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestAReplacedFileKeepsWhatItHas is about owner, mode, attributes and ACL.
func TestAReplacedFileKeepsWhatItHas(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"f": "1", "x": "1", "plain": "1"})
	v.do(unix.Chmod(v.at("f"), 0o2640))
	v.do(os.Chmod(v.at("x"), 0o640))
	id := fmt.Sprintf(" %d:%d", os.Getuid(), os.Getgid())
	if canGive(t) {
		id = " 1000:1001"
		for _, path := range []string{"f", "x"} {
			v.do(os.Chown(v.at(path), 1000, 1001))
		}
		v.do(unix.Chmod(v.at("f"), 0o2640))
	}
	// Version 2; rw for the owner, r for user 7, rw for the group, a mask of rw, none else.
	acl := []byte("\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\x07\x00\x00\x00" +
		"\x04\x00\x06\x00\xff\xff\xff\xff" + "\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff")
	withACL := unix.Setxattr(v.at("f"), aclName, acl, 0) == nil
	withUser := unix.Setxattr(v.at("f"), "user.colour", []byte("green"), 0) == nil
	if !withACL || !withUser {
		t.Logf("the file system has ACLs: %v, attributes: %v", withACL, withUser)
	}
	// What the directory gives by default is for new files alone.
	_ = unix.Setxattr(v.dir, "system.posix_acl_default", acl, 0)
	mode := v.shown("f")
	v.commit()
	v.move(v.treeOf(upstream{"f": "2", "x*": "2", "plain": "2", "new": "1"}))
	for path, want := range map[string]string{"f": mode, "x": "750" + id} {
		if got := v.shown(path); got != want {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
	value := make([]byte, 256)
	if n, err := unix.Getxattr(v.at("f"), aclName, value); withACL && (err != nil || !slices.Equal(value[:n], acl)) {
		t.Errorf("the ACL is %q, error %v", value[:max(n, 0)], err)
	}
	if n, err := unix.Getxattr(v.at("f"), "user.colour", value); withUser && (err != nil || string(value[:n]) != "green") {
		t.Errorf("the attribute is %q, error %v", value[:max(n, 0)], err)
	}
	if _, err := unix.Getxattr(v.at("plain"), aclName, value); withACL && err == nil {
		t.Error("a replaced file got the ACL that the directory gives to new ones")
	}
	if got := v.scan(v.request()); len(got.Changes) > 0 || got.Metadata["f"] != (metadata.Entry{}) {
		t.Errorf("a scan after: %+v %v", got.Changes, got.Metadata)
	}
}
