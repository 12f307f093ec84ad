package gittest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestServerEndsWithTests: what was started ends when the tests are killed, who then put
// nothing away.
func TestServerEndsWithTests(t *testing.T) {
	const variable = "GITTEST_KILLED"
	if os.Getenv(variable) != "" {
		StartSSHD(t, SSHDOptions{})
		fmt.Println("started")
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	sshdProgram(t)
	tests := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	tests.Env = append(os.Environ(), variable+"=yes", "TMPDIR="+t.TempDir())
	stdin, err := tests.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := tests.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tests.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "started\n" {
		t.Errorf("the tests say %q, %v", line, err)
	}
	children := childrenOf(tests.Process.Pid)
	if err := tests.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = tests.Wait() // It was killed.
	if len(children) != 1 {
		t.Fatalf("the tests have the children %v, want one sshd", children)
	}
	// Of what has ended and is not waited for, no arguments are left.
	until(t, func() bool {
		arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(children[0]), "cmdline"))
		return err != nil || len(arguments) == 0
	})
}
