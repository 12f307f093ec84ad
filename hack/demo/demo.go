// Command demo shows the drivers at work on this machine, in less than a minute and
// without a cluster: it starts what was built, plays the kubelet to the one and the
// people around a repository to the other, and says step by step what was asked and
// what came back.
//
// It checks each thing it says and ends with an error at the first that differs.
// It must never leave anything behind: it mounts in a mount namespace of its own
// and writes below one temporary directory.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// storyTimeout bounds one story; the longest takes half a minute on an idle machine.
const storyTimeout = 3 * time.Minute

// story is one driver's part of the demo. Tell works below dir, an empty
// directory of its own, with the binaries in bin.
type story struct {
	title string
	tell  func(ctx context.Context, n *narrator, bin, dir string) error
}

func stories() []story {
	return []story{
		{"The per-node driver: a directory on each node, for stores that replicate themselves", tellPerNode},
		{"The git driver's engine: a directory whose history is on a server, over SSH", tellWatch},
	}
}

func main() {
	bin := flag.String("bin", "bin", "`directory` of the built drivers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, *bin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	stop()
	os.Exit(code)
}

// run makes the temporary directory and the namespace, and in it, as a second
// process, tells the stories.
func run(ctx context.Context, bin string) (int, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return 1, err
	}
	if dir, inside := insideNamespace(); inside {
		if err := isolate(); err != nil {
			return 1, err
		}
		if err := tellAll(ctx, os.Stdout, stories(), bin, dir); err != nil {
			return 1, err
		}
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "liken-demo-")
	if err != nil {
		return 1, err
	}
	code, err := runInNamespace(ctx, dir)
	// What the stories mounted went with their namespace, so this deletes only
	// what they wrote.
	if removeErr := os.RemoveAll(dir); err == nil && removeErr != nil {
		return 1, removeErr
	}
	return code, err
}

func tellAll(ctx context.Context, out io.Writer, stories []story, bin, dir string) error {
	// Mount points in the mount table have no links in their paths.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for i, s := range stories {
		own := filepath.Join(dir, fmt.Sprint(i+1))
		if err := os.Mkdir(own, 0o755); err != nil {
			return err
		}
		n := newNarrator(out, own)
		n.title(s.title)
		telling, cancel := context.WithTimeout(ctx, storyTimeout)
		err := s.tell(telling, n, bin, own)
		cancel()
		if err != nil {
			return fmt.Errorf("step %d: %w", n.steps, err)
		}
		n.end()
	}
	return nil
}
