package remote

import (
	"crypto/rand"
	"encoding/base64"
	"os/exec"
	"path/filepath"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// BenchmarkList is what confinement and the driver's own connections cost, beside git
// without them.
func BenchmarkList(b *testing.B) {
	bare := gittest.NewBare(b)
	bare.Grow("main", "f", "1")
	c := newCommand(b)
	for name, remote := range map[string]Remote{"local": local(b, bare), "http": overHTTP(b, bare), "ssh": overSSH(b, bare)} {
		b.Run(name+"/driver", func(b *testing.B) {
			for b.Loop() {
				_, err := c.List(b.Context(), remote, "main")
				check(b, err)
			}
		})
		if name != "ssh" {
			b.Run(name+"/git", func(b *testing.B) {
				for b.Loop() {
					cmd := exec.Command("git", "ls-remote", remote.URL.String())
					cmd.Env = gittest.Environment(filepath.Join(filepath.Dir(bare.Dir), "gitconfig"))
					check(b, cmd.Run())
				}
			})
		}
	}
}

// BenchmarkFetch is 16 MiB over HTTP, which the server does not compress.
func BenchmarkFetch(b *testing.B) {
	const size = 16 << 20
	content := make([]byte, size*3/4)
	_, _ = rand.Read(content)
	bare := gittest.NewBare(b)
	bare.Git("config", "core.compression", "0")
	bare.Grow("main", "f", base64.StdEncoding.EncodeToString(content))
	remote := overHTTP(b, bare)
	c := newCommand(b)
	b.Run("driver", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			store := gittest.NewBare(b)
			_, err := c.Fetch(b.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			check(b, err)
		}
	})
	b.Run("git", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			store := gittest.NewBare(b)
			store.Git("fetch", "-q", remote.URL.String(), "+refs/heads/main:refs/x/1")
		}
	})
}
