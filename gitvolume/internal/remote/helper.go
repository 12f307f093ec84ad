package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The variables by which a run's children find the gateway, and ssh its options.
const (
	gatewayVariable = "LIKEN_GIT_GATEWAY"
	optionsVariable = "LIKEN_GIT_SSH_OPTIONS"
	// runVariable marks every process of a run, wherever it hides from its group.
	runVariable = "LIKEN_GIT_RUN"
)

// ask sends the gateway one message; the connection is returned once it said yes.
func ask(words ...string) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: os.Getenv(gatewayVariable), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("reach the driver: %w", err)
	}
	if _, err := fmt.Fprintf(conn, "%s\n", strings.Join(words, " ")); err != nil {
		return nil, errors.Join(fmt.Errorf("ask the driver: %w", err), conn.Close())
	}
	answer, err := readMessage(conn)
	if err == nil && answer != doneAnswer {
		err = errors.New(answer)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func report(words ...string) error {
	conn, err := ask(words...)
	if err != nil {
		return err
	}
	return conn.Close()
}

// dialForChild has the driver connect to a host and port. ssh is handed the
// connection itself when its standard output is a socket, as ProxyUseFdpass has it;
// for git's core.gitProxy the bytes are carried.
func dialForChild(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%d arguments, want a host and a port", len(args))
	}
	conn, err := ask(dialMessage, args[0], args[1])
	if err != nil {
		return err
	}
	if mode, err := os.Stdout.Stat(); err == nil && mode.Mode()&os.ModeSocket != 0 {
		return handOver(conn)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, os.Stdin)
		ended <- errors.Join(err, conn.CloseWrite())
	}()
	if _, err := io.Copy(os.Stdout, conn); err != nil {
		return fmt.Errorf("carry what the remote sends: %w", err)
	}
	// The remote has ended: what git still has to say reaches nobody.
	return nil
}

func handOver(conn *net.UnixConn) error {
	file, err := conn.File()
	if err != nil {
		return fmt.Errorf("take the connection's descriptor: %w", err)
	}
	// ssh reads it as one that blocks or not as it likes; a blocking one is what it
	// would have made itself.
	if err := unix.SetNonblock(int(file.Fd()), false); err != nil {
		return fmt.Errorf("make the connection block: %w", err)
	}
	if err := unix.Sendmsg(int(os.Stdout.Fd()), []byte{0}, unix.UnixRights(int(file.Fd())), nil, 0); err != nil {
		return fmt.Errorf("hand the connection over: %w", err)
	}
	return nil
}

// runSSH runs ssh with the session's options before git's own, and tells the driver
// its status: 255 is ssh's own failure, any other the remote command's. git does not
// tell them apart.
func runSSH(args []string) (int, error) {
	var options []string
	if err := json.Unmarshal([]byte(os.Getenv(optionsVariable)), &options); err != nil {
		return 255, fmt.Errorf("read the options of ssh: %w", err)
	}
	cmd := exec.Command("ssh", append(options, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// ssh gets the group's signals itself; this process has to see how it ends.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	parent := os.Getppid()
	if err := endWithParent(parent); err != nil {
		return 255, err
	}
	if err := cmd.Start(); err != nil {
		return 255, fmt.Errorf("start ssh: %w", err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait() // The state tells how it ended.
	if status := cmd.ProcessState.ExitCode(); status >= 0 {
		return status, report(sshMessage, fmt.Sprint(status))
	}
	// It was killed, and nothing is known of the connection.
	return 255, nil
}
