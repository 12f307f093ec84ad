package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/remote"
)

// programVariable makes this test binary the program: the tests start real processes.
const programVariable = "GITVOLUME_TEST_PROGRAM"

// patience bounds every wait, for a machine that is slow and loaded.
const patience = 2 * time.Minute

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
	await(h.t, path+" deleted", func() bool {
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
func (h *home) watch(dir string, more ...string) *process {
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

// process is one running program.
type process struct {
	t        testing.TB
	cmd      *exec.Cmd
	out, log output
	ended    chan struct{}
}

func (h *home) start(arguments ...string) *process {
	h.t.Helper()
	p := &process{t: h.t, cmd: h.command(arguments...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	p.begin()
	return p
}

func (p *process) begin() {
	p.t.Helper()
	p.ended = make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState has all that it says
		close(p.ended)
	}()
	p.t.Cleanup(func() {
		if !p.hasEnded() {
			p.kill()
		}
		if p.t.Failed() {
			p.t.Logf("%q said:\n%s%s", p.cmd.Args, p.out.String(), p.log.String())
		}
	})
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

func (p *process) kill() {
	p.t.Helper()
	p.signal(unix.SIGKILL)
	p.wait()
}

// stop interrupts it and wants the exit code.
func (p *process) stop(want int) {
	p.t.Helper()
	p.signal(unix.SIGINT)
	if code := p.wait(); code != want {
		p.t.Errorf("exit code %d after SIGINT, want %d", code, want)
	}
}

// wait returns the exit code, -1 for a signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Errorf("it did not end")
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// awaits waits until it has printed lines with the words, so often.
func (p *process) awaits(words string, times int) {
	p.t.Helper()
	await(p.t, words, func() bool {
		if strings.Count(p.out.String(), words) >= times {
			return true
		}
		if p.hasEnded() {
			p.t.Fatalf("it ended with %d and never said %q", p.cmd.ProcessState.ExitCode(), words)
		}
		return false
	})
}

// forget has awaits look at what is printed from now on.
func (p *process) forget() {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	p.out.buffer.Reset()
}

// refused wants one line on standard error that has the words, and the code for that.
func (p *process) refused(words ...string) {
	p.t.Helper()
	if code := p.wait(); code != exitUnusable {
		p.t.Errorf("exit code %d, want %d", code, exitUnusable)
	}
	said := p.log.String()
	if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "gitvolume: ") || !strings.HasSuffix(said, "\n") {
		p.t.Errorf("it says %q, want one line that starts with \"gitvolume: \"", said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			p.t.Errorf("it says %q, which lacks %q", said, word)
		}
	}
}

// output collects what a process writes while others read it.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %q", what)
		}
	}
}
