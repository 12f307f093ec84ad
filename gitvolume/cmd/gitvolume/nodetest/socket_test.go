package nodetest

import (
	"os"
	"testing"

	"liken.sh/csicommon/csitest/process"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Somebody cleans up what the plugin needs to be found.
func TestSocketsThatAreGone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start()
	if err := os.Remove(n.RegistrationSocket()); err != nil {
		t.Fatal(err)
	}
	process.Await(t, "the registration socket to be there again", func() bool { return exists(n.RegistrationSocket()) })
	if code, body := n.Get("/healthz"); code != 200 {
		t.Errorf("/healthz answers %d, %q", code, body)
	}
	if err := os.Remove(n.Socket()); err != nil {
		t.Fatal(err)
	}
	if code, body := n.Get("/healthz"); code != 503 {
		t.Errorf("/healthz answers %d, %q without a socket, want 503", code, body)
	}
}

func TestStopRemovesTheSockets(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start()
	n.Plugin.Stop()
	for _, socket := range []string{n.Socket(), n.RegistrationSocket()} {
		if exists(socket) {
			t.Errorf("%s is still there", socket)
		}
	}
}
