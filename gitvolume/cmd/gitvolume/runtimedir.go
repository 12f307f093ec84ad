package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// longestRuntime is how long the path of the user's directory for sockets may be, in
// bytes: those of sockets end at 107.
const longestRuntime = 30

// runtimeDir makes the directory for sockets and the like of the process that has the
// store. It is the same for each such process, so that what a killed one has left running
// is found.
func runtimeDir(store string) (string, error) {
	dir := filepath.Join(runtimeBase(), fmt.Sprintf("gitvolume-%d-%s", os.Geteuid(), sum(store)[:12]))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the directory for sockets: %w", err)
	}
	// Where everybody may write, somebody may have made it first.
	var stat unix.Stat_t
	if err := unix.Lstat(dir, &stat); err != nil {
		return "", fmt.Errorf("look at the directory for sockets: %w", err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR || int(stat.Uid) != os.Geteuid() || stat.Mode&0o077 != 0 {
		return "", fmt.Errorf("%q is not a directory of yours alone: remove it, or set XDG_RUNTIME_DIR to a directory that is", dir)
	}
	return dir, nil
}

// removeRuntimeDir removes the directory and what is in it, and nothing else, whatever
// links there may be.
func removeRuntimeDir(dir string) error {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("remove the directory for sockets: %w", err)
	}
	defer root.Close()
	if err := root.RemoveAll(filepath.Base(dir)); err != nil {
		return fmt.Errorf("remove the directory for sockets: %w", err)
	}
	return nil
}

// runtimeBase is the user's own directory for sockets, where there is one that git and ssh
// can be told of.
func runtimeBase() string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	dir := os.Getenv("XDG_RUNTIME_DIR")
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() && filepath.IsAbs(dir) && len(dir) <= longestRuntime && strings.Trim(dir, plain) == "" {
		return dir
	}
	return "/tmp"
}
