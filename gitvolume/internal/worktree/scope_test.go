package worktree

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
)

// TestWhatALookAtAPathReveals has more change than the paths that are looked at.
func TestWhatALookAtAPathReveals(t *testing.T) {
	for _, row := range []struct {
		name  string
		do    func(v *volume)
		paths []string
		want  []string
	}{
		{"nothing", func(v *volume) {}, []string{"a/b/f", "a", "none", "."}, nil},
		{"not what it does not name", func(v *volume) { v.write("a/b/f", "2"); v.write("a/g", "2") }, []string{"a/b/f"}, []string{"a/b/f"}},
		{"a directory above is gone", func(v *volume) { v.do(os.RemoveAll(v.at("a"))) }, []string{"a/b/f"}, []string{"-a/b/f", "-a/g"}},
		{"a directory above is a link", func(v *volume) {
			v.do(os.RemoveAll(v.at("a")))
			symlinkTo(t, "c", v.at("a"))
		}, []string{"a/b/f"}, []string{"a", "-a/b/f", "-a/g"}},
		{"a directory above is new", func(v *volume) { v.write("n/m/x", "1"); v.write("n/y", "1") }, []string{"n/m/x"}, []string{"n/m/x", "n/y"}},
		{"a directory above is another", func(v *volume) {
			v.do(unix.Renameat2(unix.AT_FDCWD, v.at("a"), unix.AT_FDCWD, v.at("c"), unix.RENAME_EXCHANGE))
		}, []string{"a/b/f"}, []string{"-a/b/f", "-a/g", "a/h"}},
		{"rules", func(v *volume) { v.write("a/.gitignore", "x"); v.write("a/x", ""); v.write("a/y", "") }, []string{"a/.gitignore"}, []string{"a/.gitignore", "a/y"}},
		{"a file that is a directory", func(v *volume) { v.do(os.Remove(v.at("a/g"))); v.write("a/g/x/y", "1") }, []string{"a/g"}, []string{"-a/g", "a/g/x/y"}},
		{"a directory that is a file", func(v *volume) { v.do(os.RemoveAll(v.at("a/b"))); v.write("a/b", "1") }, []string{"a/b"}, []string{"a/b", "-a/b/f"}},
		{"below a file", func(v *volume) {}, []string{"a/g/x/y"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := newVolume(t)
			v.write("a/b/f", "1")
			v.write("a/g", "1")
			v.write("c/h", "1")
			v.commit()
			row.do(v)
			request := v.request()
			request.Paths, request.Subtrees = row.paths, nil
			v.wantsChanges(v.scan(request), row.want...)
		})
	}
}

// TestSubmodules is SPEC 3.15: their directories are empty, and no deletion.
func TestSubmodules(t *testing.T) {
	v := newVolume(t)
	mkdirs(t, v.at("sub"))
	v.write("f", "x")
	commit := object.ID{1, 2, 3}
	v.memory = (*Memory)(nil).With([]Edit{{"sub", Entry{Mode: object.Submodule, Blob: commit}}, {"gone", Entry{Mode: object.Submodule, Blob: commit}}})
	result := v.scan(v.request())
	v.wantsChanges(result, "f", "-gone")
	if e := result.Memory.Entry("sub"); e.Mode != object.Submodule || e.Blob != commit {
		t.Errorf("remembered %v", e)
	}
	if entry := result.Metadata["sub"]; !entry.IsZero() {
		t.Errorf("recorded %v", entry)
	}
	v.memory = result.Memory
	v.write("sub/own", "x")
	v.wantsChanges(v.scan(v.request()), "-sub", "sub/own")
	v.do(os.RemoveAll(v.at("sub")))
	v.wantsChanges(v.scan(v.request()), "-sub")
}

// TestSeen has a volume be looked at that nobody commits.
func TestSeen(t *testing.T) {
	v := newVolume(t)
	v.write("old", "1")
	v.commit()
	v.write("f", "1")
	v.do(os.Remove(v.at("old")))
	request := v.request()
	request.Blobs = Hasher{}
	first := v.scan(request)
	v.wantsChanges(first, "f", "-old")
	if len(first.Found) != 2 {
		t.Errorf("found %q", first.Found)
	}
	request.Seen = first.Memory
	v.write("g", "1")
	second := v.scan(request)
	v.wantsChanges(second, "f", "g", "-old")
	if len(second.Found) != 1 || second.Found[0] != "g" {
		t.Errorf("found %q", second.Found)
	}
	// Once it is to be stored everything is read, whatever was seen before.
	request.Blobs, request.Seen = v.repo, second.Memory
	v.adopt(v.scan(request))
	v.wants("f", "g")
	v.equalsGit()
}
