package nodetest

import (
	"os"
	"testing"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Somebody cleans up what the plugin needs to be found.
func TestSocketsThatAreGone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start()
	if err := os.Remove(n.registrationSocket()); err != nil {
		t.Fatal(err)
	}
	await(t, "the registration socket to be there again", func() bool { return exists(n.registrationSocket()) })
	if code, body := n.get("/healthz"); code != 200 {
		t.Errorf("/healthz answers %d, %q", code, body)
	}
	if err := os.Remove(n.socket()); err != nil {
		t.Fatal(err)
	}
	if code, body := n.get("/healthz"); code != 503 {
		t.Errorf("/healthz answers %d, %q without a socket, want 503", code, body)
	}
}

func TestStopRemovesTheSockets(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start()
	n.plugin.stop()
	for _, socket := range []string{n.socket(), n.registrationSocket()} {
		if exists(socket) {
			t.Errorf("%s is still there", socket)
		}
	}
}
