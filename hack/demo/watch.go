package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// metadataOfMain is where the remote has modes and empty directories of main.
const metadataOfMain = "refs/git-csi/metadata:refs%2Fheads%2Fmain"

// watched is the state of the story between its steps.
type watched struct {
	*narrator
	bin, dir string
	// sockets is a directory with a short name.
	sockets string
	server  *server
	ada     *colleague
	process *plugin
	// heard is how much of what the process printed was looked at.
	heard int
	side  string
}

func (s *watched) path(below ...string) string {
	return filepath.Join(append([]string{s.dir}, below...)...)
}

func tellWatch(ctx context.Context, n *narrator, bin, dir string) (err error) {
	if !letsIn() {
		n.line("\nleft out: OpenSSH's server lets nobody in here; run the demo as root")
		return nil
	}
	s := &watched{narrator: n, bin: bin, dir: dir, ada: &colleague{
		bare: filepath.Join(dir, "notes.git"), clone: filepath.Join(dir, "ada"), home: dir,
	}}
	if s.sockets, err = os.MkdirTemp("", "gv"); err != nil {
		return err
	}
	defer func() {
		for _, process := range []*plugin{s.process, s.serverProcess()} {
			if process != nil {
				err = process.abandon(err)
			}
		}
		err = errors.Join(err, os.RemoveAll(s.sockets))
	}()
	for _, step := range []func(context.Context) error{
		s.repository, s.start, s.edits, s.upstream, s.conflict, s.merge, s.interrupt, s.restore, s.log,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *watched) serverProcess() *plugin {
	if s.server == nil {
		return nil
	}
	return s.server.process
}

func (s *watched) repository(ctx context.Context) (err error) {
	s.step("An OpenSSH server with its own host key, a key that it lets in, and a repository with one file")
	if s.server, err = startServer(ctx, s.path("ssh")); err != nil {
		return err
	}
	if _, err := s.ada.git(ctx, s.dir, "init", "-q", "--bare", "-b", "main", s.ada.bare); err != nil {
		return err
	}
	if _, err := s.ada.git(ctx, s.dir, "clone", "-q", s.ada.bare, s.ada.clone); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.ada.clone, "plan"), []byte("plan: think\n"), 0o644); err != nil {
		return err
	}
	if err := s.ada.do(ctx, []string{"add", "plan"}, []string{"commit", "-q", "-m", "Begin"}, []string{"push", "-q", "-u", "origin", "HEAD:main"}); err != nil {
		return err
	}
	s.got("listening on loopback; notes.git holds file plan")
	return nil
}

const demoClass = `apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata:
  name: fast
driverName: git.liken.sh
parameters:
  push.quiesce: 5s
`

// launch starts to watch a directory of that name.
func (s *watched) launch(name string, more ...string) (err error) {
	arguments := append([]string{
		"watch", name, "--url", s.server.url(s.ada.bare), "--ssh-key", s.server.key, "--known-hosts", s.server.hosts,
	}, more...)
	s.asked("gitvolume watch %s --url ssh://SERVER/notes.git --ssh-key id --known-hosts known_hosts %s", name, strings.Join(more, " "))
	cmd := exec.Command(filepath.Join(s.bin, "gitvolume"), arguments...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_STATE_HOME="+s.path("state"), "XDG_RUNTIME_DIR="+s.sockets)
	s.heard = 0
	s.process, err = startProcess(cmd)
	return err
}

// hears waits for a line with the words, and says it.
func (s *watched) hears(ctx context.Context, words string) (string, error) {
	for {
		text := s.process.log.String()[s.heard:]
		for line := range strings.Lines(text) {
			if strings.HasSuffix(line, "\n") && strings.Contains(line, words) {
				s.heard += strings.Index(text, line) + len(line)
				_, said, _ := strings.Cut(strings.TrimSpace(line), " ") // It begins with the time.
				s.got("%s", said)
				return said, nil
			}
		}
		if err := s.process.awaitMore(ctx, s.heard+len(text), words); err != nil {
			return "", err
		}
	}
}

func (s *watched) start(ctx context.Context) error {
	s.step("A directory is watched: it gets what the repository has")
	if err := os.WriteFile(s.path("class.yaml"), []byte(demoClass), 0o644); err != nil {
		return err
	}
	if err := s.launch("notes", "--class", "class.yaml"); err != nil {
		return err
	}
	if _, err := s.hears(ctx, "armed: "); err != nil {
		return err
	}
	return s.holds("notes/plan", "plan: think\n")
}

// holds says what a file has, and is an error if that is not want.
func (s *watched) holds(file, want string) error {
	content, err := os.ReadFile(s.path(file))
	if err != nil {
		return err
	}
	s.got("%s holds %q", file, content)
	return equal(file, string(content), want)
}

func (s *watched) edits(ctx context.Context) error {
	s.step("An application writes: files with modes, and an empty directory. Five quiet seconds later it is pushed")
	s.asked("write diary, token (0600) and run (0755), make spool (0700)")
	for _, file := range []struct {
		name string
		mode os.FileMode
	}{{"diary", 0o644}, {"token", 0o600}, {"run", 0o755}} {
		if err := os.WriteFile(s.path("notes", file.name), []byte(file.name+"\n"), file.mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(s.path("notes", "spool"), 0o700); err != nil {
		return err
	}
	if _, err := s.hears(ctx, "pushed: "); err != nil {
		return err
	}
	files, err := s.ada.remote(ctx, "ls-tree", "--format=%(objectmode) %(path)", "main")
	if err != nil {
		return err
	}
	record, err := s.ada.remote(ctx, "show", metadataOfMain)
	if err != nil {
		return err
	}
	s.got("main on the server:\n%s", files)
	s.got("and beside it, since git keeps neither:\n%s", record)
	return errors.Join(
		holds("main", files, "100644 diary", "100755 run", "100644 token", "100644 plan"),
		holds("the record", record, `file 0600 - - "token"`, `empty 0700 - - "spool"`))
}

func (s *watched) upstream(ctx context.Context) error {
	s.step("Ada pushes another file meanwhile: what the application writes goes on top of hers")
	s.asked("Ada: commit and push ideas; the application: write diary")
	if err := s.ada.commits(ctx, "ideas", "ideas\n", "Add ideas"); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("notes", "diary"), []byte("diary, day 2\n"), 0o644); err != nil {
		return err
	}
	for _, words := range []string{"rebased: 1 commit onto ", "pushed: "} {
		if _, err := s.hears(ctx, words); err != nil {
			return err
		}
	}
	return s.holds("notes/ideas", "ideas\n")
}

func (s *watched) conflict(ctx context.Context) error {
	s.step("Both change the same line: nothing is overwritten, the directory goes on on a branch of its own")
	s.asked("Ada: commit and push plan; the application: write plan")
	if err := s.ada.commits(ctx, "plan", "plan: think more\n", "Think more"); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("notes", "plan"), []byte("plan: do\n"), 0o644); err != nil {
		return err
	}
	said, err := s.hears(ctx, "diverged: ")
	if err != nil {
		return err
	}
	s.side = regexp.MustCompile(`main\.notes-\w+`).FindString(said)
	if _, err := s.hears(ctx, "pushed: "); err != nil {
		return err
	}
	var plans []string
	for _, branch := range []string{"main", s.side} {
		plan, err := s.ada.remote(ctx, "show", branch+":plan")
		if err != nil {
			return err
		}
		s.got("%s on the server has %q", branch, plan)
		plans = append(plans, plan)
	}
	return errors.Join(equal("plan on main", plans[0], "plan: think more"), equal("plan on the side branch", plans[1], "plan: do"),
		s.holds("notes/plan", "plan: do\n"))
}

func (s *watched) merge(ctx context.Context) error {
	s.step("Ada merges that branch: with its next push the directory is back on main")
	s.asked("Ada: merge the branch and push; the application: write diary")
	if err := s.ada.merges(ctx, s.side); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("notes", "diary"), []byte("diary, day 3\n"), 0o644); err != nil {
		return err
	}
	for _, words := range []string{"healed: ", "pushed: "} {
		if _, err := s.hears(ctx, words); err != nil {
			return err
		}
	}
	branches, err := s.ada.remote(ctx, "branch", "--format=%(refname:short)")
	if err != nil {
		return err
	}
	s.got("branches on the server: %s", branches)
	return equal("the branches", branches, "main")
}

func (s *watched) interrupt(ctx context.Context) error {
	s.step("Ctrl-C: what was written last is committed and pushed before the end")
	s.asked("the application: write diary; SIGINT")
	if err := os.WriteFile(s.path("notes", "diary"), []byte("diary, the last day\n"), 0o644); err != nil {
		return err
	}
	if err := s.end(ctx, "stopped: all is on the remote"); err != nil {
		return err
	}
	diary, err := s.ada.remote(ctx, "show", "main:diary")
	if err != nil {
		return err
	}
	return equal("the diary on the server", diary, "diary, the last day")
}

// end interrupts the process, which says so as its last, and wants exit code 0.
func (s *watched) end(ctx context.Context, words string) error {
	if err := s.process.stop(ctx, syscall.SIGINT); err != nil {
		return err
	}
	if _, err := s.hears(ctx, words); err != nil {
		return err
	}
	s.got("exit code %d", s.process.process.ProcessState.ExitCode())
	return nil
}

func (s *watched) restore(ctx context.Context) error {
	s.step("Another directory gets all of it, the modes and the empty directory too; without a class nothing is committed there")
	if err := s.launch("copy"); err != nil {
		return err
	}
	if _, err := s.hears(ctx, "not armed: "); err != nil {
		return err
	}
	for name, want := range map[string]os.FileMode{"token": 0o600, "run": 0o755, "spool": 0o700 | os.ModeDir, "diary": 0o644} {
		info, err := os.Lstat(s.path("copy", name))
		if err != nil {
			return err
		}
		if err := equal("the mode of copy/"+name, info.Mode(), want); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(s.path("copy"))
	if err != nil {
		return err
	}
	var lines []string
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%s  copy/%s", info.Mode(), entry.Name()))
	}
	s.got("%s", strings.Join(lines, "\n"))
	return s.end(ctx, "stopped: ")
}

func (s *watched) log(ctx context.Context) error {
	s.step("The history on the server")
	s.asked("git log --graph main")
	graph, err := s.ada.remote(ctx, "log", "--graph", "--format=%h %<(14)%an %s", "main")
	if err != nil {
		return err
	}
	s.got("%s", graph)
	check, err := s.ada.remote(ctx, "fsck", "--strict", "--no-dangling", "--no-progress")
	if err != nil {
		return err
	}
	return errors.Join(equal("what git fsck finds", check, ""),
		holds("the log", graph, "Begin", "Update 3 paths", "Add ideas", "Think more", "Update plan", "Merge what was written meanwhile"))
}
