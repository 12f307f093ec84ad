package soak

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
)

// check looks at what is left when all pods are gone: nothing but the store.
func (r *torture) check() {
	r.checkMounts()
	idle := time.Now().Add(3 * time.Second)
	time.Sleep(time.Until(idle))
	lived := r.goroutines()
	r.plugin.start(r.isDiskFull)
	time.Sleep(3 * time.Second)
	fresh := r.goroutines()
	r.compareGoroutines(lived, fresh)
	r.plugin.start(r.isDiskFull)
	r.plugin.end(unix.SIGTERM)
	r.checkProcesses()
	r.checkFiles()
	for _, repository := range r.repositories {
		r.checkRepository(repository)
	}
	r.checkStore()
}

func (r *torture) checkMounts() {
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(filepath.Join(r.plugin.KubeletDir, "pods")))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, info := range infos {
		r.findings.add("a mount is left at %s", info.Mountpoint)
	}
	_ = filepath.WalkDir(filepath.Join(r.plugin.KubeletDir, "pods"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "mount" {
			r.findings.add("a target is left at %s", path)
		}
		return nil
	})
}

// goroutines ends the plugin and is what its goroutines were: how many were made at a line.
func (r *torture) goroutines() map[string]int {
	said := r.plugin.end(unix.SIGQUIT)
	found := map[string]int{}
	for part := range strings.SplitSeq(said, "\n\n") {
		if !strings.HasPrefix(part, "goroutine ") {
			continue
		}
		made := regexp.MustCompile(`(?m)^created by (\S+)`).FindStringSubmatch(part)
		if made == nil {
			made = []string{"", "main"}
		}
		found[made[1]]++
	}
	if len(found) == 0 {
		r.findings.add("the plugin does not tell its goroutines: %s", lastLines(said))
	}
	return found
}

// compareGoroutines wants a plugin that went through something to have no more of them than
// one that has just started. A call of the kubelet's or a connection may just be ending.
func (r *torture) compareGoroutines(lived, fresh map[string]int) {
	const ending = 2
	for at, count := range lived {
		if count > fresh[at]+ending {
			r.findings.add("%d goroutines made by %s are left, where a fresh plugin has %d", count, at, fresh[at])
		}
	}
}

// checkProcesses wants no process to be left that has to do with the store.
func (r *torture) checkProcesses() {
	process.Await(r.t, "the plugin's children to end", func() bool { return len(r.processes()) == 0 })
}

// processes are those of the plugin.
func (r *torture) processes() (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.HasPrefix(cwd, r.plugin.Store) || strings.Contains(string(arguments), r.plugin.Store) || strings.Contains(string(arguments), filepath.Join(r.place, "run")) {
			found = append(found, dir+" "+strings.ReplaceAll(string(arguments), "\x00", " "))
		}
	}
	return found
}

// checkFiles wants nothing temporary to be left.
func (r *torture) checkFiles() {
	for _, name := range []string{"run", "tmp"} {
		left, err := os.ReadDir(filepath.Join(r.place, name))
		if err != nil || len(left) > 0 {
			r.findings.add("left in the directory %s: %v, %v", name, left, err)
		}
	}
	temporary := []string{"tmp_", "tmp-", "incoming-", ".next"}
	_ = filepath.WalkDir(r.plugin.Store, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			r.findings.add("look through the store: %v", err)
			return nil
		}
		if e.IsDir() && e.Name() == "tree" {
			return fs.SkipDir // It was compared with a commit.
		}
		isTemporary := strings.HasSuffix(e.Name(), ".lock") ||
			slices.ContainsFunc(temporary, func(mark string) bool { return strings.HasPrefix(e.Name(), mark) })
		if isTemporary {
			r.findings.add("left in the store: %s", path)
		}
		return nil
	})
}
