package writeable_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
)

func TestMain(m *testing.M) {
	remote.Child(os.Args)
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "w")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	command, err = remote.New(remote.Settings{Executable: program, Directory: dir, Environment: os.Environ()})
	if err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// command runs git, as the driver's own does. TestMain alone sets it.
var command *remote.Command

// merger merges with git, which looks for the objects in the store.
func merger(dir string) history.Merger { return lazyMerger(dir) }

// lazyMerger is made where it is used, so that all of it belongs to the test.
type lazyMerger string

func (m lazyMerger) MergeTrees(ctx context.Context, ours, theirs object.ID, attributes map[string][]byte) (object.ID, []string, error) {
	return command.Merger(string(m)).MergeTrees(ctx, ours, theirs, attributes)
}
