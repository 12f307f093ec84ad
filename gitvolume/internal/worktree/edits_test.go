package worktree

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// editor makes edits, as an application would, and notes what a watch would say.
type editor struct {
	v               *volume
	paths, subtrees []string
}

// edits are the kinds that a scan sees; some are more common than others.
func edits() []string {
	return []string{
		"write", "write", "write", "append", "chmod", "link", "mkdir", "remove", "rename", "rename", "rules", "no rules", "touch", "chown",
	}
}

// drawnNames are of paths.
func drawnNames() []string {
	return []string{"a", "b", "a.b", "a0", "x y", "\xff", "new\nline", "-d", "cache", "A"}
}

// drawEdit is an edit of one of the kinds, to be made in any number of trees.
func drawEdit(t *rapid.T, kinds []string) func(e *editor) {
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(drawnNames()), 1, 3).Draw(t, "names"), "/")
	})
	one := path.Draw(t, "path")
	edit := drawKind(t, kinds, one, path)
	return func(e *editor) {
		if e.plain(one) {
			edit(e)
		}
	}
}

func drawKind(t *rapid.T, kinds []string, one string, path *rapid.Generator[string]) func(e *editor) {
	switch kind := rapid.SampledFrom(kinds).Draw(t, "edit"); kind {
	case "write":
		content := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "content")
		return func(e *editor) {
			e.make(one, func(at string) error { return os.WriteFile(at, content, 0o644) })
		}
	case "append":
		return func(e *editor) { e.append(one) }
	case "chmod":
		mode := rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o600, 0o744, 0o654, 0, 0o777 | os.ModeSetgid | os.ModeSticky}).Draw(t, "mode")
		return func(e *editor) { e.change(one, func(at string) error { return os.Chmod(at, mode) }) }
	case "touch":
		return func(e *editor) { e.change(one, func(at string) error { return os.Chtimes(at, e2t(1), e2t(1)) }) }
	case "chown":
		id := rapid.IntRange(0, 2).Draw(t, "owner")
		return func(e *editor) {
			if os.Getuid() == 0 && os.Lchown(e.v.at(one), id, id) == nil {
				e.paths = append(e.paths, one)
			}
		}
	case "link":
		target := rapid.SampledFrom(append(drawnNames(), "../..", "/", ".")).Draw(t, "target")
		return func(e *editor) { e.make(one, func(at string) error { return os.Symlink(target, at) }) }
	case "mkdir":
		return func(e *editor) { e.make(one, func(at string) error { return os.Mkdir(at, 0o755) }) }
	case "remove":
		return func(e *editor) { e.remove(one) }
	case "rename":
		other := path.Draw(t, "to")
		return func(e *editor) { e.rename(one, other) }
	case "rules", "no rules":
		return drawRules(t, kind)
	case "pipe":
		return func(e *editor) { e.make(one, func(at string) error { return unix.Mkfifo(at, 0o644) }) }
	case "barred":
		// One that holds no repository, which git takes for a directory like any other.
		name := rapid.SampledFrom([]string{".git", ".git", ".GIT", "git~1"}).Draw(t, "name")
		below := rapid.SampledFrom([]string{"x", "hooks/x"}).Draw(t, "below")
		return func(e *editor) {
			e.make(join(one, name)+"/"+below, func(at string) error { return os.WriteFile(at, nil, 0o644) })
		}
	}
	panic("no such edit")
}

func drawRules(t *rapid.T, kind string) func(e *editor) {
	rules := join(rapid.SampledFrom([]string{".", "a", "b", "a/b", "cache"}).Draw(t, "directory"), ".gitignore")
	patterns := []string{"*.b", "a", "/a", "b/", "!a", "x y", "**/a", "cache/", "*", "!*/", "\xff", "a/*", "!a/b", "/b/a"}
	text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 3).Draw(t, "patterns"), "\n")
	return func(e *editor) {
		if !e.plain(rules) {
			return
		}
		if kind == "rules" && os.WriteFile(e.v.at(rules), []byte(text), 0o644) == nil || kind == "no rules" && os.Remove(e.v.at(rules)) == nil {
			e.paths = append(e.paths, rules)
		}
	}
}

// append writes at the end of what is a file.
func (e *editor) append(path string) {
	if stat, err := os.Lstat(e.v.at(path)); err != nil || !stat.Mode().IsRegular() {
		return
	}
	file, err := os.OpenFile(e.v.at(path), os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	_, err = file.WriteString("+")
	e.v.do(err)
	e.v.do(file.Close())
	e.paths = append(e.paths, path)
}

// change changes what is no link.
func (e *editor) change(path string, do func(at string) error) {
	if stat, err := os.Lstat(e.v.at(path)); err == nil && stat.Mode()&os.ModeSymlink == 0 && do(e.v.at(path)) == nil {
		e.paths = append(e.paths, path)
	}
}

func (e *editor) rename(from, to string) {
	if e.plain(to) {
		e.make(to, func(at string) error { return os.Rename(e.v.at(from), at) })
		e.note(from, false)
	}
}

// plain tells whether the way to a path leads over no link.
func (e *editor) plain(path string) bool {
	for dir, _ := split(path); dir != "."; dir, _ = split(dir) {
		if stat, err := os.Lstat(e.v.at(dir)); err == nil && !stat.IsDir() {
			return false
		}
	}
	return true
}

// make makes something at a path and whatever directories that takes.
func (e *editor) make(path string, do func(at string) error) {
	if !e.plain(path) {
		return
	}
	for end := strings.IndexByte(path, '/'); end >= 0; {
		if dir := path[:end]; os.Mkdir(e.v.at(dir), 0o755) == nil {
			e.subtrees = append(e.subtrees, dir)
		}
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			break
		}
		end += 1 + next
	}
	if stat, err := os.Lstat(e.v.at(path)); err == nil && stat.Mode()&(os.ModeSymlink|os.ModeNamedPipe) != 0 {
		e.v.do(os.Remove(e.v.at(path))) // Not to be written through.
		e.note(path, false)
	}
	if do(e.v.at(path)) == nil {
		e.note(path, true)
	}
}

func (e *editor) remove(path string) {
	stat, err := os.Lstat(e.v.at(path))
	if err != nil {
		return
	}
	e.v.do(os.RemoveAll(e.v.at(path)))
	e.note(path, stat.IsDir())
}

// note notes what an event would say of a path.
func (e *editor) note(path string, made bool) {
	if stat, err := os.Lstat(e.v.at(path)); !made || err == nil && stat.IsDir() {
		e.subtrees = append(e.subtrees, path)
	}
	e.paths = append(e.paths, path)
}
