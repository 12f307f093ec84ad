package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/metadata"
)

// longestName is how much of a directory's name its handle and its store have.
const longestName = 40

// place is the watched directory.
type place struct {
	// dir is its path, absolute and without links.
	dir string
	// isThere tells that it exists, and isEmpty that nothing is in it.
	isThere, isEmpty bool
	// root is what the directory is like, or is to be like when it is made.
	root metadata.Seen
}

// findPlace looks at the directory and changes nothing.
func findPlace(dir string) (place, error) {
	path, err := resolve(dir)
	if err != nil {
		return place{}, fmt.Errorf("find the directory %q: %w", dir, err)
	}
	if path == "/" {
		return place{}, errors.New(`"/" is all of the machine: name a directory in it`)
	}
	p := place{dir: path, isEmpty: true}
	var stat unix.Stat_t
	switch err := unix.Lstat(path, &stat); {
	case errors.Is(err, fs.ErrNotExist):
		p.root = freshRoot()
		return p, nil
	case err != nil:
		return place{}, fmt.Errorf("look at %q: %w", path, err)
	case stat.Mode&unix.S_IFMT != unix.S_IFDIR:
		return place{}, fmt.Errorf("%q is not a directory: name one that is there, or is to be made", path)
	}
	p.isThere = true
	p.root = metadata.Seen{Kind: metadata.Directory, Mode: stat.Mode & 0o7777, Owner: stat.Uid, Group: stat.Gid}
	entries, err := os.ReadDir(path)
	if err != nil {
		return place{}, fmt.Errorf("look into %q: %w", path, err)
	}
	p.isEmpty = len(entries) == 0
	return p, nil
}

// freshRoot is what mkdir makes.
func freshRoot() metadata.Seen {
	umask := unix.Umask(0)
	unix.Umask(umask)
	return metadata.Seen{
		Kind: metadata.Directory, Mode: uint32(0o777 &^ umask),
		Owner: uint32(os.Geteuid()), Group: uint32(os.Getegid()),
	}
}

// resolve makes a path absolute and follows its links, as far as it exists.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%q is a link to something that is not there", path)
	}
	parent, err := resolve(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// check refuses a directory and a store of which one is in the other: the history would
// be committed into itself, or the directory tidied away.
func (p *place) check(store string) error {
	switch {
	case store == p.dir:
		return fmt.Errorf("--store is the watched directory itself, %q: give it one elsewhere", p.dir)
	case isBelow(p.dir, store):
		return fmt.Errorf("the store %q would be in the watched directory, and committed with it: give --store a directory elsewhere", store)
	case isBelow(store, p.dir):
		return fmt.Errorf("%q is in the store %q, which is gitvolume's own: watch a directory elsewhere", p.dir, store)
	}
	return nil
}

func isBelow(above, path string) bool { return strings.HasPrefix(path, above+"/") }

// hasGit tells whether the directory is git's own checkout.
func (p *place) hasGit() bool {
	_, err := os.Lstat(filepath.Join(p.dir, ".git"))
	return err == nil
}

// handle is the volume's name: the directory's own, as far as a handle can have it, and a
// sum by which it is no other directory's, on no other machine. The side branch is called
// by it, so two machines must not come to the same.
func (p *place) handle() string {
	machine, _ := os.ReadFile("/etc/machine-id") // A container often has none.
	return p.name() + "-" + sum(string(machine), p.dir)[:8]
}

func (p *place) name() string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, strings.ToLower(filepath.Base(p.dir)))
	name = strings.Trim(name[:min(len(name), longestName)], "-")
	if name == "" {
		return "dir"
	}
	return name
}

// defaultStore is where the directory's history is kept unless the user says otherwise.
func (p *place) defaultStore() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // The specification says to ignore others.
		home := os.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New("--store: there is neither $XDG_STATE_HOME nor $HOME to keep the history below; give a directory")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "gitvolume", p.name()+"-"+sum(p.dir)[:8]), nil
}

func sum(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:])
}
