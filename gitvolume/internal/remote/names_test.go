package remote

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// pretends serves the repository by git's oldest protocol, with other names of its refs.
func pretends(t *testing.T, b *gittest.Bare, refs ...string) Remote {
	t.Helper()
	server := gittest.Listen(t, func(conn net.Conn) {
		if _, err := gittest.ReadPacket(conn); err != nil {
			return
		}
		// What the client says next answers the refs that it was shown.
		cmd := exec.Command("git", "upload-pack", "--strict", b.Dir)
		cmd.Env = append(os.Environ(), "GIT_PROTOCOL=")
		cmd.Stdin = conn
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			return
		}
		defer func() { _ = cmd.Wait() }()
		for {
			if packet, err := gittest.ReadPacket(out); packet == "" || err != nil {
				break
			}
		}
		_, _ = io.WriteString(conn, gittest.Advertisement("side-band-64k ofs-delta", refs...))
		_, _ = io.Copy(conn, out)
		_ = conn.Close()
	})
	return at(t, "git://"+server.Address+"/r")
}

// TestNamesThatAreRefspecs: a commit is looked for in all branches, of whose names a
// server makes what it wants.
func TestNamesThatAreRefspecs(t *testing.T) {
	b := gittest.NewBare(t)
	wanted := b.Grow("main", "f", "1")
	tip := b.Grow("main", "f", "2")
	for _, name := range []string{
		"refs/heads/main:refs/git-csi/v", "refs/heads/*:refs/git-csi/*", "refs/heads/main:", "refs/heads/x y",
		"refs/heads/main\r", "^refs/heads/main", "+refs/heads/main:refs/git-csi/v",
	} {
		t.Run(name, func(t *testing.T) {
			store := gittest.NewBare(t)
			store.SetRef("refs/git-csi/v", store.Commit(map[string]string{"f": "mine"}))
			before := fmt.Sprint(store.Refs())
			remote := pretends(t, b, tip+" refs/heads/main", tip+" "+name)
			request := Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{strings.Repeat("12", 20): "refs/x/1"}}
			_, err := newCommand(t).Fetch(t.Context(), request)
			wantError(t, err, ErrNoRef)
			if after := fmt.Sprint(store.Refs()); after != before {
				t.Errorf("the store's refs were %s and are %s", before, after)
			}
			request.Refs = map[string]string{wanted: "refs/x/1"}
			fetched, err := newCommand(t).Fetch(t.Context(), request)
			check(t, err)
			if fetched[wanted].Commit.String() != wanted {
				t.Errorf("%+v", fetched)
			}
		})
	}
}

func TestTooManyNames(t *testing.T) {
	for name, long := range map[string]int{"many": 0, "long": 1000} {
		t.Run(name, func(t *testing.T) {
			var refs []string
			for i := range mostNames + 1 {
				refs = append(refs, fmt.Sprintf("%s refs/heads/%0*d", someID, long, i))
				if long*i > mostNameBytes {
					break
				}
			}
			remote := speaks(t, func(conn net.Conn) {
				_, _ = io.WriteString(conn, gittest.Advertisement("", refs...))
				_, _ = io.Copy(io.Discard, conn)
			})
			store := gittest.NewBare(t)
			_, err := newCommand(t).Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{strings.Repeat("12", 20): "refs/x/1"}})
			wantError(t, err, errTooManyNames)
			wantError(t, err, ErrFailed)
		})
	}
}
