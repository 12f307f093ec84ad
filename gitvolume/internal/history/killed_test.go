package history

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// TestKilled kills a process that commits, at random moments: the repository has to open
// and hold all that was told to be durable, and the ref is what it was or what it was
// about to be (C43).
func TestKilled(t *testing.T) {
	for name, row := range map[string]struct {
		children, commits int           // How many are killed, in which of the first commits.
		within            time.Duration // Of the moment from which on they are killed.
		large             string        // Not empty if they commit large files.
	}{
		"at any moment":            {children: 10, within: 300 * time.Millisecond, large: "yes"},
		"while a ref is to be set": {children: 25, commits: 3, within: 6 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "repository")
			peer := newPeer(t, dir)
			tip, changed := object.ID{}, 0
			for range row.children {
				told := killAfter(t, dir, row.large, min(row.commits, 1+rand.IntN(3)), time.Duration(rand.Int64N(int64(row.within))))
				if err := Create(dir); err != nil {
					t.Fatal(err)
				}
				if _, err := Recover(dir); err != nil {
					t.Fatal(err)
				}
				r := openRepository(t, dir)
				peer.fsck()
				next := told.named
				if next.IsZero() {
					next = tip
				}
				got, err := r.Ref("refs/heads/main")
				switch {
				case err != nil && !next.IsZero():
					t.Fatalf("%s was durable: %v", next, err)
				case got != next && got != told.naming:
					t.Fatalf("the ref is %s, it was %s and about to be %s", got, next, told.naming)
				case got == told.naming && got != told.named:
					changed++
				}
				if tip = got; !tip.IsZero() {
					must(r.Own(object.ID{}, tip))
				}
				r.Close()
			}
			t.Logf("%d of %d were killed when the ref was set and had not told so", changed, row.children)
		})
	}
}

// told are the last commits that a child told of, if any.
type told struct{ naming, named object.ID }

// killAfter has a child commit to the repository, and kills it when it has told of so
// many commits that it is about to name, and then after the delay.
func killAfter(t *testing.T, dir, large string, commits int, delay time.Duration) told {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir, childLargeEnv+"="+large)
	var failed bytes.Buffer
	child.Stderr = &failed
	output := must(child.StdoutPipe())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var last told
	lines := bufio.NewReader(output)
	next := func() error {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		what, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		if what == naming {
			last.naming = parse(t, id)
		} else {
			last.named = parse(t, id)
		}
		return nil
	}
	for before := (object.ID{}); commits > 0; {
		if err := next(); err != nil {
			t.Fatalf("the child ended by itself: %v\n%s", err, failed.String())
		}
		if last.naming != before {
			before, commits = last.naming, commits-1
		}
	}
	time.Sleep(delay) // The moment is the input.
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err := next()
	for err == nil {
		err = next()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil || failed.Len() > 0 {
		t.Fatalf("the child ended by itself: %v\n%s", err, failed.String())
	}
	return last
}
