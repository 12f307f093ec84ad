package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// backgroundRuns is how many runs of git there are at a time for which nobody waits.
const backgroundRuns = 2

// children is what runs git, and what git and ssh find the program by.
type children struct {
	command  *remote.Command
	runtime  string // The directory for sockets; empty: it stays.
	program  string
	sessions string
	bundles  *credential.Bundles
}

// openChildren prepares what git runs with, for the process that has the store. The paths
// go through shells and configuration files, and into names of sockets, which are short:
// so they are none of the user's. What an error leaves is closed as ever.
func openChildren(store *store.Store) (c children, err error) {
	program, err := os.Executable()
	if err != nil {
		return c, fmt.Errorf("find this program: %w", err)
	}
	if c.runtime, err = runtimeDir(store.Dir()); err != nil {
		return c, err
	}
	c.program, c.sessions = filepath.Join(c.runtime, "gitvolume"), filepath.Join(c.runtime, "sessions")
	c.command, err = remote.New(remote.Settings{
		Executable: program, Directory: filepath.Join(c.runtime, "git"), Environment: os.Environ(), Room: store.CheckFree,
	})
	if err != nil {
		return c, err
	}
	if err := os.Remove(c.program); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	if err := os.Symlink(program, c.program); err != nil {
		return c, err
	}
	if err := os.MkdirAll(c.sessions, 0o700); err != nil {
		return c, err
	}
	c.bundles = credential.NewBundles(c.sessions)
	return c, credential.RemoveSessions(c.sessions)
}

// serving is how credentials are lent to them. Given is that of credential.Serving.
func (c *children) serving(hosts *credential.KnownHosts, given string) credential.Serving {
	return credential.Serving{
		Dir: c.sessions, Helper: []string{c.program, helperWord}, Hosts: hosts, Bundles: c.bundles, Given: given,
	}
}

// keepRuntime has the directory for sockets stay: by what is in it the next process finds
// what still runs.
func (c *children) keepRuntime() { c.runtime = "" }

// close removes the directory for sockets. While the store is this process's, no other
// has it.
func (c *children) close() error {
	if c.runtime == "" {
		return nil
	}
	return removeRuntimeDir(c.runtime)
}
