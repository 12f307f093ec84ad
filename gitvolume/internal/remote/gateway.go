package remote

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What a child asks the gateway, in one line, and what it is answered.
const (
	dialMessage  = "dial"  // dial HOST PORT: answered, then the connection is that to the host
	sshMessage   = "ssh"   // ssh STATUS: how ssh ended
	askedMessage = "asked" // the remote asked for a credential, and there is none
	doneAnswer   = "ok"
)

// longestMessage is longer than any host's name.
const longestMessage = 1 << 10

// messageTimeout bounds how long a child may take to say what it wants.
const messageTimeout = 10 * time.Second

// listen serves the run's children on a socket in its directory, whose path it
// returns.
func (l *link) listen(dir string) (string, error) {
	path := filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return "", fmt.Errorf("listen for the children of git: %w", err)
	}
	l.serve(listener, l.answer)
	return path, nil
}

// serve has each connection handled until close.
func (l *link) serve(listener net.Listener, handle func(net.Conn)) {
	if !l.keep(listener) {
		return
	}
	l.workers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				if l.done.Err() != nil || errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(10 * time.Millisecond) // Of descriptors there may soon be some again.
				continue
			}
			if l.keep(conn) {
				l.workers.Go(func() {
					defer l.drop(conn)
					handle(conn)
				})
			}
		}
	})
}

// answer serves one child.
func (l *link) answer(child net.Conn) {
	_ = child.SetDeadline(time.Now().Add(messageTimeout))
	line, err := readMessage(child)
	if err != nil {
		return
	}
	_ = child.SetDeadline(time.Time{})
	words := strings.Fields(line)
	switch {
	case len(words) == 3 && words[0] == dialMessage:
		server, number, err := l.dial(words[1], words[2])
		if err != nil {
			_, _ = fmt.Fprintf(child, "%s\n", oneLine(err.Error()))
			return
		}
		if _, err := fmt.Fprintf(child, "%s\n", doneAnswer); err != nil {
			_ = server.Close()
			return
		}
		l.splice(child, server, number)
	case len(words) == 2 && words[0] == sshMessage:
		if status, err := strconv.Atoi(words[1]); err == nil {
			l.note(func(f *facts) { f.sshStatus = status })
		}
		_, _ = fmt.Fprintf(child, "%s\n", doneAnswer)
	case len(words) == 1 && words[0] == askedMessage:
		l.note(func(f *facts) { f.asked = true })
		_, _ = fmt.Fprintf(child, "%s\n", doneAnswer)
	}
}

// readMessage reads one line and not a byte beyond it, because what follows belongs to
// whoever has the connection next.
func readMessage(conn net.Conn) (string, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < longestMessage; {
		if _, err := conn.Read(one); err != nil {
			return "", fmt.Errorf("read a line: %w", err)
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
	return "", fmt.Errorf("a line has more than %d bytes", longestMessage)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// socks serves curl as a SOCKS proxy on a port of the loopback address, to whoever knows
// the password. It returns the proxy's URL.
func (l *link) socks(password string) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the connections of git: %w", err)
	}
	l.serve(listener, func(client net.Conn) {
		_ = client.SetDeadline(time.Now().Add(messageTimeout))
		reader := bufio.NewReader(client)
		host, port, err := acceptSOCKS(reader, client, password)
		if err != nil {
			return
		}
		_ = client.SetDeadline(time.Time{})
		server, number, err := l.dial(host, port)
		if err != nil {
			replySOCKS(client, err)
			return
		}
		replySOCKS(client, nil)
		l.splice(client, server, number) // curl sends nothing before the reply: the reader is empty.
	})
	return "socks5h://git:" + password + "@" + listener.Addr().String(), nil
}
