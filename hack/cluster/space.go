package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/toolset"
)

const mebibyte = 1 << 20

// cacheVariable moves what was built.
const cacheVariable = "XDG_CACHE_HOME"

// need is how much space something takes in a directory, which need not be there.
type need struct {
	dir   string
	bytes uint64
	what  string
	// variable is what moves the directory to another disk.
	variable string
}

func (n need) String() string {
	return fmt.Sprintf("%d MiB in %s %s (%s moves it)", n.bytes/mebibyte, n.dir, n.what, n.variable)
}

// haveSpace looks at each disk once for all that is wanted of it.
func (p *program) haveSpace() error {
	needs := []need{{p.cluster.State, 1500 * mebibyte, "to run", layout.StateVariable}}
	built, err := p.isBuilt()
	if err != nil {
		return err
	}
	if !built {
		directories, err := goEnv("GOMODCACHE", "GOCACHE")
		if err != nil {
			return err
		}
		needs = append(needs,
			need{directories[0], 2000 * mebibyte, "to download what Kubernetes is built from", "GOMODCACHE"},
			need{directories[1], 3500 * mebibyte, "to compile it", "GOCACHE"},
			need{p.cluster.Cache, 500 * mebibyte, "to keep it", cacheVariable})
	}
	return enough(needs, available)
}

// haveSpaceForImages wants the most for the first: a Debian with a compiler and Go
// is made, kept and taken over, and unpacked once more for each build.
func (p *program) haveSpaceForImages() error {
	wanted := need{p.cluster.Cache, 2000 * mebibyte, "to build images", cacheVariable}
	if made, err := filepath.Glob(filepath.Join(p.bases(), "*.tar")); err != nil || len(made) == 0 {
		wanted.bytes = 5000 * mebibyte
	}
	return enough([]need{wanted}, available)
}

// bases is the directory of images that only builds start from.
func (p *program) bases() string { return filepath.Join(p.cluster.Cache, "bases") }

// isBuilt tells whether all programs are there.
func (p *program) isBuilt() (bool, error) {
	builder := toolset.Builder{Modules: p.modules, Cache: p.cluster.Cache}
	for _, set := range toolset.Sets() {
		dir, err := builder.Dir(set)
		if err != nil {
			return false, err
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
	}
	return true, nil
}

// enough fails when a disk has less than is needed of it in all. disk tells which
// one a directory is on and what that has.
func enough(needs []need, disk func(dir string) (device, bytes uint64, err error)) error {
	wanted := map[uint64][]string{}
	sum := map[uint64]uint64{}
	var short error
	for _, n := range needs {
		device, have, err := disk(n.dir)
		if err != nil {
			return fmt.Errorf("ask how much space %s has: %w", n.dir, err)
		}
		wanted[device] = append(wanted[device], n.String())
		// What is needed of that disk later in the list is said too.
		if sum[device] += n.bytes; have < sum[device] {
			short = fmt.Errorf("too little disk space: %d MiB left, want %d MiB: %s",
				have/mebibyte, sum[device]/mebibyte, strings.Join(wanted[device], ", "))
		}
	}
	return short
}

// available asks about the nearest directory upwards that is there.
func available(dir string) (device, bytes uint64, err error) {
	for {
		var stat unix.Stat_t
		if err = unix.Stat(dir, &stat); err == nil {
			device = stat.Dev
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return 0, 0, err
		}
		dir = filepath.Dir(dir)
	}
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		return 0, 0, err
	}
	return device, system.Bavail * uint64(system.Bsize), nil
}
