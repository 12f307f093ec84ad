package main

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/mountns"
)

// umaskVariable makes this test binary the plugin, with the umask it holds: the
// tests of this package start the real process and talk to its sockets.
const umaskVariable = "PERNODE_TEST_PLUGIN_UMASK"

func TestMain(m *testing.M) {
	gate.Enter()
	umask, isPlugin := os.LookupEnv(umaskVariable)
	if !isPlugin {
		mountns.Main(m)
	}
	mask, err := strconv.ParseUint(umask, 8, 32)
	if err != nil {
		panic(err)
	}
	unix.Umask(int(mask))
	debug.SetGCPercent(collectAt) // As main does, for those who measure.
	os.Exit(run(os.Args[1:]))
}

// pluginCommand is the plugin with the usual umask.
func pluginCommand(arguments ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", arguments...)
	cmd.Args[0] = "pernode"
	cmd.Env = append(os.Environ(), umaskVariable+"=022")
	return cmd
}

// inPrivateNamespace is the command under `unshare -m --propagation private`.
func inPrivateNamespace(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	return cmd
}

// withUmask is the command of a plugin that is started with the umask.
func withUmask(umask string, cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, umaskVariable+"="+umask)
	return cmd
}
