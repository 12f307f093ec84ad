package worktree

import (
	"os"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// pushes sends a tree to a server that checks what it is sent.
func (v *volume) pushes(server *gittest.Bare, tree object.ID) (string, error) {
	v.t.Helper()
	commit := strings.TrimSpace(v.run("commit-tree", "-m", "test", tree.String()))
	return server.TryGit("--git-dir="+v.store, "push", "-q", "-f", server.Dir, commit+":refs/heads/main")
}

// TestContentThatServersRefuse is C28 and C35: a file with which no push would go
// through is left out, and everything else goes on.
func TestContentThatServersRefuse(t *testing.T) {
	long := strings.Repeat("x", 2048)
	for name, test := range map[string]struct{ path, content string }{
		"an option as a path":        {".gitmodules", "[submodule \"a\"]\n\tpath = -x\n"},
		"a command":                  {".gitmodules", "[submodule \"a\"]\n\tupdate = !touch x\n"},
		"a name that leads out":      {"d/.gitmodules", "[submodule \"../a\"]\n\turl = x\n"},
		"by its name on Windows":     {"GITMOD~1", "[submodule \"a\"]\n\turl = -x\n"},
		"in upper case":              {".GITMODULES", "[submodule \"a\"]\n\turl = -x\n"},
		"a line that is too long":    {"d/.gitattributes", long + "\n"},
		"more than can be looked at": {".gitattributes", strings.Repeat("* text\n", history.MostChecked/7+1)},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			server := gittest.NewBare(t)
			v.write("ok", "1")
			v.write(test.path, test.content)
			if !strings.HasPrefix(name, "more") {
				blob, err := v.repo.Blob([]byte(test.content))
				v.do(err)
				tree, err := v.repo.Edit(object.ID{}, []history.Change{{Path: test.path, Mode: object.Regular, Blob: blob}})
				v.do(err)
				v.do(v.repo.Flush())
				if said, err := v.pushes(server, tree); err == nil {
					t.Fatalf("the server takes it: %s", said)
				}
			}
			v.wantsSkips(v.commit(), map[string]Reason{test.path: Content})
			v.wants("ok")
			v.wantsSkips(v.commit(), nil)
			v.accepts(server)

			// Put right it is committed, and wrong again it stays as it was.
			v.write(test.path, "# right\n")
			v.wantsChanges(v.commit(), test.path)
			v.write(test.path, test.content)
			v.write("ok", "2")
			result := v.commit()
			v.wantsSkips(result, map[string]Reason{test.path: Content})
			v.wantsChanges(result, "ok")
			if got := v.content(test.path); got != "# right\n" {
				t.Errorf("committed %.100q", got)
			}
			v.accepts(server)
			result = v.commit()
			v.wantsSkips(result, nil)
			if len(result.Found) != 0 {
				t.Errorf("found again: %q", result.Found)
			}
			v.do(os.Remove(v.at(test.path)))
			v.wantsChanges(v.commit(), "-"+test.path)
		})
	}
}

// TestRefusedContentOfUpstream is committed already, and so nothing new.
func TestRefusedContentOfUpstream(t *testing.T) {
	v := newVolume(t)
	bad := "[submodule \"a\"]\n\tpath = -x\n"
	blob, err := v.repo.Blob([]byte(bad))
	v.do(err)
	v.root, err = v.repo.Edit(object.ID{}, []history.Change{{Path: ".gitmodules", Mode: object.Regular, Blob: blob}})
	v.do(err)
	v.memory = v.memory.With([]Edit{{".gitmodules", Entry{Mode: object.Regular, Blob: blob}}})
	v.write(".gitmodules", bad)
	result := v.commit()
	v.wantsChanges(result)
	v.wantsSkips(result, nil)
}

// accepts fails unless the server takes what is committed.
func (v *volume) accepts(server *gittest.Bare) {
	v.t.Helper()
	if said, err := v.pushes(server, v.root); err != nil {
		v.t.Fatalf("the server refuses what is committed: %v: %s", err, said)
	}
}
