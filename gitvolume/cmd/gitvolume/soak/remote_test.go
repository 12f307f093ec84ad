//go:build soak

package soak

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"liken.sh/gitvolume/internal/gittest"
)

// gitFiles are the files of a commit: mode and id by path.
func gitFiles(bare *gittest.Bare, commit string) (map[string]string, error) {
	out, err := bare.TryGit("ls-tree", "-r", "-z", commit)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	files := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		about, path, _ := strings.Cut(line, "\t")
		fields := strings.Fields(about)
		if len(fields) == 3 {
			files[path] = fields[0] + " " + fields[2]
		}
	}
	return files, nil
}

// treeFiles are the files of a directory, the same way.
func treeFiles(root string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := read(at)
		if err != nil {
			return err
		}
		path, _ := filepath.Rel(root, at)
		mode := "100644"
		switch {
		case f.mode.Type() == fs.ModeSymlink:
			mode = "120000"
		case f.mode&0o100 != 0:
			mode = "100755"
		}
		files[path] = mode + " " + f.blob()
		return nil
	})
	return files, err
}

// differs says in what a volume's tree is none of so many commits that its branch was last;
// empty: it is one.
func (r *torture) differs(s *seat, ref string, depth int) string {
	got, err := treeFiles(s.target())
	if err != nil {
		return err.Error()
	}
	out, err := s.repository.bare.TryGit("rev-list", "--topo-order", "-n", strconv.Itoa(depth), "refs/heads/"+ref)
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	var first map[string]string
	for i, commit := range strings.Fields(out) {
		want, err := gitFiles(s.repository.bare, commit)
		switch {
		case err != nil:
			return err.Error()
		case maps.Equal(want, got):
			return ""
		case i == 0:
			first = want
		}
	}
	return difference(first, got)
}

func difference(want, got map[string]string) string {
	var paths []string
	for path := range want {
		if got[path] != want[path] {
			paths = append(paths, fmt.Sprintf("%s (%s there, %s here)", path, want[path], got[path]))
		}
	}
	for path := range got {
		if want[path] == "" {
			paths = append(paths, fmt.Sprintf("%s (here alone, %s)", path, got[path]))
		}
	}
	slices.Sort(paths)
	return fmt.Sprintf("%d paths, such as %q", len(paths), paths[:min(3, len(paths))])
}

// compareRemotes wants all that applications wrote to be in the remote's history.
func (r *torture) compareRemotes(when string) {
	for _, w := range r.writers {
		journal, ref := w.application.journal, w.ref()
		files, err := gitFiles(w.repository.bare, "refs/heads/"+ref)
		if err != nil {
			r.findings.add("%s: %v", when, err)
			continue
		}
		for _, path := range journal.paths() {
			f, _ := journal.get(path)
			if _, id, _ := strings.Cut(files[path], " "); id != f.blob() {
				r.findings.add("%s: %s is not on %s of %s; it has %q; %s", when, path, ref, w.repository.name, files[path], journal.told(f.entry))
			}
		}
		for i := range shares {
			content, err := w.repository.bare.TryGit("cat-file", "blob", "refs/heads/"+ref+":"+sharePath(i))
			if err != nil {
				r.findings.add("%s: %s of %s: %v", when, sharePath(i), ref, err)
			}
			for _, number := range journal.missing(sharePath(i), content) {
				r.findings.add("%s: a line is not on %s of %s: %s", when, ref, w.repository.name, journal.told(number))
			}
		}
	}
}

// checkRepository looks at the history of a remote.
func (r *torture) checkRepository(repository *repository) {
	if said, err := repository.bare.TryGit("fsck", "--strict"); err != nil {
		r.findings.add("fsck of %s: %v: %s", repository.name, err, said)
	}
	r.checkUpdates(repository)
	r.checkOnce(repository)
}

// checkUpdates wants each new value of a ref to descend from the one before, and none but
// side branches to be deleted.
func (r *torture) checkUpdates(repository *repository) {
	text, err := os.ReadFile(repository.updates)
	if err != nil {
		r.findings.add("the updates of %s: %v", repository.name, err)
		return
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	// What git itself wrote of the refs that are there, whoever changed them.
	logs, _ := filepath.Glob(filepath.Join(repository.bare.Dir, "logs", "refs", "*", "*"))
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			r.findings.add("the log of a ref: %v", err)
		}
		ref, _ := filepath.Rel(filepath.Join(repository.bare.Dir, "logs"), log)
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 2 {
				lines = append(lines, ref+" "+fields[0]+" "+fields[1])
			}
		}
	}
	for _, line := range slices.Compact(slices.Sorted(slices.Values(lines))) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			r.findings.add("an update of %s is %q", repository.name, line)
			continue
		}
		ref, was, is := fields[0], fields[1], fields[2]
		switch {
		case strings.Trim(was, "0") == "":
		case strings.Trim(is, "0") == "":
			if !strings.HasPrefix(ref, "refs/heads/main.w") && !strings.HasPrefix(ref, "refs/heads/dev.w") {
				r.findings.add("%s of %s was deleted", ref, repository.name)
			}
		default:
			if _, err := repository.bare.TryGit("cat-file", "-e", is); err != nil {
				continue // The push did not arrive.
			}
			if said, err := repository.bare.TryGit("merge-base", "--is-ancestor", was, is); err != nil {
				r.findings.add("%s of %s went from %s to %s, which does not descend from it: %s", ref, repository.name, was, is, said)
			}
		}
	}
}

// emptyBlob is what git calls a file without content.
const emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

// checkOnce wants the plugin to have committed no content of an application twice.
func (r *torture) checkOnce(repository *repository) {
	out := repository.bare.Git("-c", "core.quotePath=false", "log", "--branches", "--no-merges", "--author=git-csi-driver",
		"--format=commit %H", "--raw", "--no-abbrev", "--no-renames")
	commit, by := "", map[string][]string{}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if id, is := strings.CutPrefix(line, "commit "); is {
			commit = id
			r.commits++
			continue
		}
		about, path, found := strings.Cut(line, "\t")
		fields := strings.Fields(about)
		if !found || len(fields) < 5 || fields[2] == fields[3] {
			continue
		}
		by[path+"\x00"+fields[3]] = append(by[path+"\x00"+fields[3]], commit)
	}
	for change, commits := range by {
		path, blob, _ := strings.Cut(change, "\x00")
		if blob == emptyBlob {
			continue // Each write that failed may leave the same of it.
		}
		for _, w := range r.writers {
			if w.repository == repository && len(commits) > 1 && w.application.journal.isWhole(path, blob) {
				r.findings.add("%s of %s was committed %d times as %s, by %q; %s", path, repository.name, len(commits), blob, commits, w.application.journal.last(path))
			}
		}
	}
}

// checkStore looks at the repositories of the node, when no plugin runs.
func (r *torture) checkStore() {
	heads, _ := filepath.Glob(filepath.Join(r.plugin.Store, "repos", "*", "HEAD"))
	if len(heads) != len(r.repositories) {
		r.findings.add("the store has the repositories %q", heads)
	}
	for _, head := range heads {
		cmd := exec.Command("git", "--git-dir", filepath.Dir(head), "fsck", "--strict")
		cmd.Env = gittest.Environment(os.DevNull)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil {
			r.findings.add("fsck of %s: %v: %s", head, err, said.String())
		}
	}
	if aside, _ := filepath.Glob(filepath.Join(r.plugin.Store, "aside", "*")); len(aside) > 0 {
		r.findings.add("%q was set aside", aside)
	}
}
