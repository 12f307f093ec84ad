package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// umaskVariable makes this test binary the plugin, with the umask it holds: the
// tests of this package start the real process and talk to its sockets.
const umaskVariable = "PERNODE_TEST_PLUGIN_UMASK"

// patience bounds every wait, for a machine that is slow and loaded.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	umask, isPlugin := os.LookupEnv(umaskVariable)
	if !isPlugin {
		mountns.Main(m)
	}
	mask, err := strconv.ParseUint(umask, 8, 32)
	if err != nil {
		panic(err)
	}
	unix.Umask(int(mask))
	os.Exit(run(os.Args[1:]))
}

// pluginCommand is the plugin with the usual umask, in the mount namespace of
// the tests.
func pluginCommand(arguments ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", arguments...)
	cmd.Args[0] = "pernode"
	cmd.Env = append(os.Environ(), umaskVariable+"=022",
		// With -race a process waits a second at its end, and there are many here.
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=10")
	return cmd
}

// ownNamespace starts the plugin as its container does: in a copy of the mount
// namespace, whose shared mounts are peers of the node's. (Cloneflags, because
// with Unshareflags the syscall package makes every mount private.)
func ownNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
}

// privateNamespace is `unshare -m --propagation private`.
func privateNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
}

// process is one running plugin.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	log   *output
	ended chan struct{}
}

// startProcess starts cmd and sees to it that it is gone with the test. A plugin
// that is still running then has to stop cleanly.
func startProcess(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, log: &output{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the plugin: %v", err)
	}
	go func() {
		_ = cmd.Wait() // ProcessState has all that it says
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("the plugin's log:\n%s", p.log)
		}
	})
	return p
}

// stop sends SIGTERM and wants exit code 0; a data race would be another one.
func (p *process) stop() {
	p.t.Helper()
	if p.hasEnded() {
		return
	}
	p.signal(unix.SIGTERM)
	if code := p.wait(); code != 0 {
		p.t.Errorf("the plugin ended with code %d after SIGTERM, want 0; its log:\n%s", code, p.log)
	}
}

func (p *process) kill() {
	p.t.Helper()
	p.signal(unix.SIGKILL)
	p.wait()
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("send %v to the plugin: %v", s, err)
	}
}

// wait returns the exit code, -1 for a signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.t.Errorf("the plugin did not end; its log:\n%s", p.log)
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

// awaitLog waits until the plugin logged words.
func (p *process) awaitLog(words string) {
	p.t.Helper()
	await(p.t, "the plugin to log "+strconv.Quote(words), func() bool {
		if strings.Contains(p.log.String(), words) {
			return true
		}
		if p.hasEnded() {
			p.t.Fatalf("the plugin ended with code %d; its log:\n%s", p.cmd.ProcessState.ExitCode(), p.log)
		}
		return false
	})
}

var httpAddress = regexp.MustCompile(`msg=starting .* http=(\S+)`)

// address is where the plugin serves HTTP.
func (p *process) address() string {
	p.t.Helper()
	p.awaitLog("msg=starting")
	found := httpAddress.FindStringSubmatch(p.log.String())
	if found == nil {
		p.t.Fatalf("the plugin does not tell its HTTP address:\n%s", p.log)
	}
	return "http://" + found[1]
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
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
