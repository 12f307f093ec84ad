package gate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

func TestMain(m *testing.M) {
	gate.Enter()
	if os.Getenv(tellVariable) != "" {
		tellTime()
	}
	mountns.Main(m)
}

// tellVariable has this test binary be a program that tells the time.
const tellVariable = "GATE_TEST_TELL_TIME"

// tellTime tells the time, and does again, with how much went by, when it is told to.
func tellTime() {
	began := time.Now()
	fmt.Println(began.Unix())
	_, _ = os.Stdin.Read(make([]byte, 1))
	fmt.Println(time.Now().Unix(), time.Since(began) < time.Hour)
	os.Exit(0)
}

// cat is the program that reads the file, not started.
func cat(t *testing.T, file string) *exec.Cmd {
	t.Helper()
	mountns.Require(t)
	program, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, file)
	cmd.Env = os.Environ()
	return cmd
}

func TestAFaultIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	within := []string{dir}
	counted := &gate.Fault{Within: within, Pid: func() int { return 0 }}
	for _, row := range []struct {
		fault *gate.Fault
		code  int
		words string
	}{
		{counted, 0, "content"},
		{&gate.Fault{Errno: unix.EIO, At: 1, Within: within}, 1, "Input/output error"},
		{&gate.Fault{Errno: unix.EMFILE, At: 1, Within: within}, 1, "Too many open files"},
		{&gate.Fault{Errno: unix.EMFILE, At: 2, Within: within}, 0, "content"},
		{&gate.Fault{Errno: unix.EIO, At: 1, Within: []string{filepath.Join(dir, "other")}}, 0, "content"},
	} {
		t.Run(fmt.Sprint(row.fault.Errno, row.fault.At), func(t *testing.T) {
			cmd := cat(t, file)
			var pid atomic.Int64
			row.fault.Pid = func() int { return int(pid.Load()) }
			gate.New(t, cmd, gate.FaultyCalls()...).Set(row.fault.Decide)
			p := process.Start(t, cmd)
			pid.Store(int64(p.Pid()))
			if code := p.Wait(); code != row.code || !strings.Contains(p.Log.String(), row.words) {
				t.Errorf("code %d, it says %q", code, p.Log.String())
			}
			if call, _ := row.fault.Done(); (call != "") != (row.code != 0) || call != "" && !strings.Contains(call, file) {
				t.Errorf("the call was %q", call)
			}
		})
	}
	if counts := counted.Counts(); counts[unix.EMFILE] != 1 || counts[unix.EIO] < 2 {
		t.Errorf("it counted %v", counts)
	}
}

// A call is known by its name and by the files it is about, however it names them.
func TestCallsAreDescribed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := cat(t, "file")
	cmd.Dir = dir
	var calls process.Output
	gate.New(t, cmd, gate.Calls(gate.Opens, gate.Reads)...).Set(func(c gate.Call) syscall.Errno {
		_, _ = fmt.Fprintln(&calls, c.Name(), c.Paths())
		return 0
	})
	if p := process.Start(t, cmd); p.Wait() != 0 {
		t.Errorf("it says %q", p.Log.String())
	}
	for _, want := range []string{"openat [" + file + "]\n", "read [" + file + "]\n"} {
		if !strings.Contains(calls.String(), want) {
			t.Errorf("%q is not among %q", want, calls.String())
		}
	}
}

// The clock of a program jumps, and nobody else's; how much time goes by stays right.
func TestTheClockJumps(t *testing.T) {
	mountns.Require(t)
	program := filepath.Join(t.TempDir(), "program")
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := gate.AskKernel(program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), tellVariable+"=yes")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	g := gate.New(t, cmd, gate.Clock)
	g.SetClock(-40 * 24 * time.Hour)
	p := process.Start(t, cmd)
	p.AwaitLog("\n")
	g.SetClock(24 * time.Hour)
	_, _ = stdin.Write([]byte("x"))
	if code := p.Wait(); code != 0 {
		t.Fatalf("code %d", code)
	}
	var first, second int64
	var isRight bool
	if _, err := fmt.Sscan(p.Log.String(), &first, &second, &isRight); err != nil {
		t.Fatalf("it says %q: %v", p.Log.String(), err)
	}
	now := time.Now()
	if off := now.AddDate(0, 0, -40).Unix() - first; off < 0 || off > 3600 {
		t.Errorf("it was %d s off from what it was to be at first", off)
	}
	if off := now.Add(24*time.Hour).Unix() - second; off < 0 || off > 3600 {
		t.Errorf("it was %d s off from what it was to be then", off)
	}
	if !isRight {
		t.Error("an hour went by")
	}
}

func TestAskKernelRefusesWhatIsNoGoProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := gate.AskKernel(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v", err)
	}
}

// A command that ends before it comes to its gate is no error of the gate's.
func TestACommandThatNeverComes(t *testing.T) {
	gate.New(t, cat(t, "file"), gate.Calls(gate.Opens)...)
}
