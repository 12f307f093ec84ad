package remote

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestRedirectToAnotherScheme has a server lead git to files of the node, to a command, and
// to what speaks no HTTP. None is followed, whatever a client of HTTP could do there.
func TestRedirectToAnotherScheme(t *testing.T) {
	private := gittest.NewBare(t)
	private.Grow("main", "f", "secret")
	ran := filepath.Join(t.TempDir(), "ran")
	asked := gittest.Listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	for _, to := range []string{
		"file://" + private.Dir + "/info/refs?service=git-upload-pack", "file://localhost" + private.Dir, "ext::touch " + ran, "ssh://" + asked.Address + "/r",
		"git://" + asked.Address + "/r", "ftp://" + asked.Address + "/r", "gopher://" + asked.Address + "/_x", "dict://" + asked.Address + "/x",
		"telnet://" + asked.Address, "scp://" + asked.Address + "/r", "//" + private.Dir, "http:///" + private.Dir, "\x1b[2J", "http://h\x07/",
	} {
		t.Run(to, func(t *testing.T) {
			server := gittest.StartHTTP(t, t.TempDir(), gittest.HTTPOptions{Around: around(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header()["Location"] = []string{to}
				w.WriteHeader(http.StatusFound)
				return true
			})})
			store := gittest.NewBare(t)
			_, err := newCommand(t).Fetch(t.Context(), Request{Dir: store.Dir, Remote: at(t, server.URL("/r.git")), Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\n") || len(err.Error()) > 2000 {
				t.Errorf("the error is %q", err)
			}
			if refs := store.Refs(); len(refs) > 0 {
				t.Errorf("the store has %v", refs)
			}
		})
	}
	if asked.Accepted() > 0 {
		t.Errorf("%d connections were made to where no HTTP is spoken", asked.Accepted())
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a command ran")
	}
}

// TestSSHServersThatLie has servers that greet with what a terminal would obey, and without
// an end. What they say is shown in one line, within its bound.
func TestSSHServersThatLie(t *testing.T) {
	const escape = "\x1b]0;owned\x07\x1b[2J\r\u202e"
	for name, greeting := range map[string]string{
		"banner":        escape + "\r\n" + strings.Repeat("welcome "+escape+"\n", 100) + "SSH-2.0-x\r\n",
		"version":       "SSH-2.0-" + escape + "\r\n",
		"old version":   "SSH-1.5-" + escape + "\r\n",
		"another":       "HTTP/1.1 200 " + escape + "\r\n\r\n",
		"long version":  "SSH-2.0-" + strings.Repeat("x", 1<<16) + "\r\n",
		"many lines":    strings.Repeat(escape+"\r\n", 1<<14),
		"no end":        strings.Repeat(escape, 1<<14),
		"NUL":           "\x00\x00\x00\x00SSH-2.0-x\r\n",
		"a bad packet":  "SSH-2.0-OpenSSH_9\r\n\xff\xff\xff\xff" + escape,
		"a long packet": "SSH-2.0-OpenSSH_9\r\n\x7f\xff\xff\xff\x04" + strings.Repeat("\x14", 1<<12),
		"a disconnect":  "SSH-2.0-OpenSSH_9\r\n\x00\x00\x00\x2c\x04\x01\x00\x00\x00\x02\x00\x00\x00\x14" + escape + strings.Repeat("x", 40),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := gittest.Listen(t, func(conn net.Conn) { _, _ = io.WriteString(conn, greeting) })
			key := gittest.NewKey(t, "ed25519")
			remote := lend(t, "ssh://git@"+server.Address+"/r", map[string]string{"ssh-privatekey": key.PEM})
			_, err := newCommand(t).List(t.Context(), remote, "main")
			if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\r\n\x00\u202e") || len(err.Error()) > 2000 {
				t.Errorf("the error is %q", err)
			}
			if server.Accepted() == 0 {
				t.Error("nobody asked it")
			}
		})
	}
}
