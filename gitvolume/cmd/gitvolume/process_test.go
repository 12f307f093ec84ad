package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/remote"
)

// programVariable makes this test binary the program: the tests start real processes.
const programVariable = "GITVOLUME_TEST_PROGRAM"

func TestMain(m *testing.M) {
	remote.Child(os.Args)
	// git gives its helpers nothing of the environment.
	isHelper := len(os.Args) > 1 && os.Args[1] == helperWord
	if _, isProgram := os.LookupEnv(programVariable); isProgram || isHelper {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// home is a user with directories to watch and a remote.
type home struct {
	t       testing.TB
	dir     string
	runtime string
	remote  *gittest.Bare
}

func newHome(t testing.TB) *home {
	t.Helper()
	runtime, err := os.MkdirTemp("/tmp", "gv") //nolint:usetesting // Sockets have short names.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &home{t: t, dir: dir, runtime: runtime, remote: gittest.NewBare(t)}
}

func (h *home) path(names ...string) string {
	return filepath.Join(append([]string{h.dir}, names...)...)
}

func (h *home) write(path, content string) string {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.path(path)), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.path(path), []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return h.path(path)
}

func (h *home) read(path string) string {
	h.t.Helper()
	content, err := os.ReadFile(h.path(path))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(content)
}

const fastClass = `apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: fast}
driverName: git.liken.sh
parameters: {push.quiesce: 5s}
`

// deleteAll deletes what a process may be writing to. A directory that was listed as empty
// has something in it again when its turn comes, until the process has noticed.
func (h *home) deleteAll(path string) {
	h.t.Helper()
	process.Await(h.t, path+" deleted", func() bool {
		err := os.RemoveAll(h.path(path))
		if err != nil && !errors.Is(err, unix.ENOTEMPTY) {
			h.t.Fatal(err)
		}
		return err == nil
	})
}

// fast is the file of a class that is as fast as a class can be.
func (h *home) fast() string { return h.write("fast.yaml", fastClass) }

// watch starts to watch a directory with the remote as files.
func (h *home) watch(dir string, more ...string) *running {
	h.t.Helper()
	return h.start(append([]string{"watch", h.path(dir), "--url", h.remote.Dir, "--allow-local-urls"}, more...)...)
}

func (h *home) command(arguments ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", arguments...)
	cmd.Args[0] = "gitvolume"
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), programVariable+"=1", "HOME="+h.dir, "XDG_STATE_HOME="+h.path("state"), "XDG_RUNTIME_DIR="+h.runtime,
		// With -race a process waits a second at its end, and there are many here.
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=10")
	return cmd
}

// running is one running program, with what it prints apart from what it logs.
type running struct {
	*process.Process
	t   testing.TB
	out process.Output
}

func (h *home) start(arguments ...string) *running {
	h.t.Helper()
	return h.run(h.command(arguments...))
}

// run starts a command of the caller's own making.
func (h *home) run(cmd *exec.Cmd) *running {
	h.t.Helper()
	p := &running{t: h.t}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.out
	}
	p.Process = process.Start(h.t, cmd)
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.t.Logf("%q printed:\n%s", cmd.Args, &p.out)
		}
	})
	return p
}

// stop interrupts it and wants the exit code.
func (p *running) stop(want int) {
	p.t.Helper()
	p.End(unix.SIGINT, want)
}

// awaits waits until it has printed lines with the words, so often.
func (p *running) awaits(words string, times int) {
	p.t.Helper()
	p.AwaitOutput(&p.out, words, times)
}

// forget has awaits look at what is printed from now on.
func (p *running) forget() { p.out.Reset() }

// refused wants one line on standard error that has the words, and the code for that.
func (p *running) refused(words ...string) {
	p.t.Helper()
	p.Refused("gitvolume", words...)
}
