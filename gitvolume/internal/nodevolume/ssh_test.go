package nodevolume_test

import (
	"os"
	"path/filepath"
	"testing"

	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

// TestLifeOverSSH has the whole way go over OpenSSH: the first stage, a push, a rebase, a
// conflict (C41 a), its merge and the heal, and a key that is rotated while commits wait.
func TestLifeOverSSH(t *testing.T) {
	t.Parallel()
	key := gittest.NewKey(t, "ed25519")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	secret := func(key gittest.Key) map[string]string {
		return map[string]string{"ssh-privatekey": key.PEM, "known_hosts": server.KnownHosts()}
	}
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"f": "1", "up": "1"})
	p := newProcess(t, newDir(t))
	w := wants(server.URL(upstream.Dir))
	w.anonymous, w.secret = false, secret(key)
	v := p.volume(w).publish()
	v.has(files{"f": "1", "up": "1"})
	v.write("own", "1")
	check(t, os.Chmod(filepath.Join(v.tree(), "own"), 0o600))
	arrives(t, upstream, "main", files{"f": "1", "up": "1", "own": "1"})

	put(t, upstream, "main", files{"up": "2"})
	v.write("own", "2")
	arrives(t, upstream, "main", files{"f": "1", "up": "2", "own": "2"})
	v.soon()
	v.has(files{"f": "1", "up": "2", "own": "2"})

	put(t, upstream, "main", files{"f": "theirs"})
	v.write("f", "mine")
	side := files{"f": "mine", "up": "2", "own": "2"}
	arrives(t, upstream, "main.notes", side)
	v.soon(report.Diverged)
	v.has(side)

	// Another key, which the server takes only later.
	other := gittest.NewKey(t, "ed25519")
	rotated, err := credential.Parse(secret(other))
	check(t, err)
	v.access.Take(rotated)
	v.write("late", "1")
	v.soon(report.Diverged, report.PushFailed)
	given, err := credential.Parse(secret(key))
	check(t, err)
	v.access.Take(given)
	tree := upstream.Git("rev-parse", "main.notes^{tree}")
	upstream.SetRef("refs/heads/main", upstream.Git("commit-tree", "-m", "merge", "-p", "main", "-p", "main.notes", tree))
	v.TakeCredential()
	side["late"] = "1"
	arrives(t, upstream, "main", side)
	v.soon()
	v.stop()
	if tip := upstream.Tip("refs/heads/main.notes"); tip != "" {
		t.Error("the side branch is still there")
	}
	p.end()
	upstream.Git("fsck", "--strict")
}
