package history

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// TestKilled kills a process that commits, at random moments: the repository has to
// open and hold all that was told to be durable (C43).
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repository")
	peer := newPeer(t, dir)
	for range 12 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childEnv+"="+dir)
		var told, failed bytes.Buffer
		child.Stdout, child.Stderr = &told, &failed
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // The moment is the input.
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := child.Wait(); err == nil || failed.Len() > 0 {
			t.Fatalf("the child ended by itself: %v\n%s", err, failed.String())
		}
		if err := Create(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Recover(dir); err != nil {
			t.Fatal(err)
		}
		r := openRepository(t, dir)
		peer.fsck()
		lines := strings.Fields(told.String())
		if len(lines) == 0 {
			continue
		}
		tip := must(r.Ref("refs/heads/main"))
		if last := parse(t, lines[len(lines)-1]); !must(r.Contains(tip, last)) {
			t.Errorf("%s was durable, the ref is %s", last, tip)
		}
		if own := must(r.Own(object.ID{}, tip)); len(own) < len(lines) {
			t.Errorf("there are %d commits, %d were durable", len(own), len(lines))
		}
		r.Close()
	}
}
