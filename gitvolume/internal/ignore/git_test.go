package ignore_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/ignore"
)

// repository is a working tree with an empty repository, in which git is asked what
// it ignores.
type repository struct {
	root string
	home string
	// options go to every git command.
	options []string
}

// newRepository makes a working tree. A test that makes many of them gives each a
// directory of its own below one t.TempDir().
func newRepository(t failer, root string) *repository {
	t.Helper()
	home := filepath.Join(root, ".git", "home")
	for _, dir := range []string{"objects", "refs", "home"} {
		mkdir(t, filepath.Join(root, ".git", dir))
	}
	write(t, filepath.Join(root, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(home, "empty"), "")
	return &repository{root: root, home: home}
}

func (r *repository) command(arguments ...string) *exec.Cmd {
	cmd := exec.Command("git", append(r.options[:len(r.options):len(r.options)], arguments...)...)
	cmd.Dir = r.root
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + filepath.Join(r.home, "empty"),
	}
	return cmd
}

// run is what a git command prints.
func (r *repository) run(t failer, arguments ...string) string {
	t.Helper()
	out, err := r.command(arguments...).Output()
	if err != nil {
		t.Fatalf("git %q: %v", arguments, err)
	}
	return string(out)
}

// decision is which pattern decides on a path; the zero value is that none does.
type decision struct {
	file    string
	line    int
	pattern string
}

func (d decision) String() string { return fmt.Sprintf("%q line %d of %q", d.pattern, d.line, d.file) }

func decisionOf(v ignore.Verdict) decision { return decision{v.File(), v.Line(), v.Pattern()} }

// asked is a running git check-ignore, which answers for path after path.
type asked struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// ask starts git check-ignore; close ends it.
func (r *repository) ask(t failer) *asked {
	t.Helper()
	cmd := r.command("check-ignore", "--verbose", "--non-matching", "--no-index", "--stdin", "-z")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("pipe to git: %v", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("pipe from git: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start git: %v", err)
	}
	return &asked{cmd, in, bufio.NewReader(out)}
}

func (a *asked) close() {
	a.in.Close()
	// Its status says whether the paths were ignored.
	_ = a.cmd.Wait()
}

// decides is git's own decision on a path, which need not exist: then it is no
// directory.
func (a *asked) decides(t failer, path string) decision {
	t.Helper()
	if _, err := io.WriteString(a.in, path+"\x00"); err != nil {
		t.Fatalf("ask git about %q: %v", path, err)
	}
	var fields [4]string
	for i := range fields {
		field, err := a.out.ReadString(0)
		if err != nil {
			t.Fatalf("read git's answer on %q: %v", path, err)
		}
		fields[i] = strings.TrimSuffix(field, "\x00")
	}
	if fields[3] != path {
		t.Fatalf("git answered on %q, asked was %q", fields[3], path)
	}
	line := 0
	if fields[1] != "" {
		number, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatalf("git's line: %v", err)
		}
		line = number
	}
	return decision{fields[0], line, fields[2]}
}

// failer is what tests, fuzz targets and rapid have in common.
type failer interface {
	Helper()
	Fatalf(format string, arguments ...any)
	Errorf(format string, arguments ...any)
}

func mkdir(t failer, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatalf("make a directory: %v", err)
	}
}

func write(t failer, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatalf("write a file: %v", err)
	}
}

func symlink(t failer, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatalf("make a link: %v", err)
	}
}

// treeAt reads the .gitignore files below root as a scanner has to.
func treeAt(root string, class ignore.Patterns) *ignore.Tree {
	return ignore.NewTree(class, func(dir string) (ignore.Patterns, error) {
		path := filepath.Join(root, dir, ".gitignore")
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			return ignore.Patterns{}, nil
		}
		content, err := os.ReadFile(path)
		return ignore.Parse(content), err
	})
}

func testRepository(t testing.TB) *repository {
	t.Helper()
	return newRepository(t, t.TempDir())
}

func removeAll(t failer, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatalf("remove: %v", err)
	}
}
