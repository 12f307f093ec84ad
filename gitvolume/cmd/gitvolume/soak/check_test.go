//go:build soak

package soak

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/leaks"
	"liken.sh/csicommon/csitest/process"
)

// mostMemory is how much more memory, in bytes, a plugin may have that went through
// something: its allocator keeps some of what was free again.
const mostMemory = 64 << 20

// ofThePlugin is what a plugin that does nothing is to have no more of.
func (r *torture) ofThePlugin() leaks.Scope { return leaks.Scope{Process: r.plugin.Plugin.Pid()} }

// ofTheNode is what there is to be no more of without a plugin.
func (r *torture) ofTheNode() leaks.Scope {
	return leaks.Scope{
		Family: os.Getpid(), Namespace: os.Getpid(), Below: filepath.Join(r.plugin.KubeletDir, "pods"),
		Directories: []string{filepath.Join(r.place, "run"), filepath.Join(r.place, "tmp")},
	}
}

// check looks at what is left when all pods are gone: nothing but the store.
func (r *torture) check() {
	r.next()
	r.waits("the plugin to have no more than at its start")
	leaks.Await(r.t, r.idle, r.ofThePlugin())
	memory := leaks.Look(r.t, r.ofThePlugin()).Anonymous - r.idle.Anonymous
	r.say("the plugin has %d KiB more than at its start", memory>>10)
	if memory > mostMemory && !process.Raced {
		r.findings.add("the plugin has %d MiB more than at its start", memory>>20)
	}
	lived := r.goroutines()
	r.plugin.start(r.isDiskFull)
	r.warmUp()
	time.Sleep(3 * time.Second)
	fresh := r.goroutines()
	r.compareGoroutines(lived, fresh)
	r.plugin.start(r.isDiskFull)
	r.plugin.end(unix.SIGTERM)
	r.waits("the node to have no more than without a plugin")
	leaks.Await(r.t, r.none, r.ofTheNode())
	r.say("look at what is left")
	r.checkTargets()
	r.checkFiles()
	for _, repository := range r.repositories {
		r.checkRepository(repository)
	}
	r.checkStore()
}

func (r *torture) checkTargets() {
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

// checkFiles wants nothing temporary to be left in the store.
func (r *torture) checkFiles() {
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
