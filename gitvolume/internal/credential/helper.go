package credential

import (
	"bytes"
	"io"
	"net"
	"strings"
	"time"
)

// The operations of the program that git and ssh run: the first three are git's
// credential helper protocol.
const (
	operationGet     = "get"
	operationStore   = "store"
	operationErase   = "erase"
	operationHostKey = "host-key"
)

// What the driver's answer begins with.
const (
	answered = "ok\n"
	declined = "no\n"
)

const (
	// helperTimeout bounds one question to the driver, which answers from memory or
	// after one small write.
	helperTimeout = 30 * time.Second
	// maxQuestion bounds what a child may ask, in bytes; git's own limit of a line is less.
	maxQuestion = 64 << 10
)

// Helper is what the driver's program does when git or ssh has run it to ask for a
// credential or a host key: it passes the question to the driver, by way of the socket
// that args name, and the answer to stdout. args are those after the words of
// Serving.Helper. It returns the exit status.
func Helper(args []string, stdin io.Reader, stdout io.Writer) int {
	if len(args) < 2 || strings.Contains(strings.Join(args, ""), "\n") {
		return 2
	}
	question := strings.Join(args[1:], " ") + "\n"
	if args[1] != operationHostKey {
		asked, err := io.ReadAll(io.LimitReader(stdin, maxQuestion))
		if err != nil {
			return 1
		}
		question += string(asked)
	}
	answer, err := ask(args[0], question)
	if err != nil {
		return 1
	}
	body, ok := bytes.CutPrefix(answer, []byte(answered))
	if !ok {
		return 1
	}
	if _, err := stdout.Write(body); err != nil {
		return 1
	}
	return 0
}

func ask(path, question string) ([]byte, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(helperTimeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, question); err != nil {
		return nil, err
	}
	if err := conn.CloseWrite(); err != nil {
		return nil, err
	}
	return io.ReadAll(conn)
}
