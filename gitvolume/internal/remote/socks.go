package remote

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// The numbers of SOCKS 5 (RFC 1928) and of its passwords (RFC 1929).
const (
	socksVersion        = 5
	socksPassword       = 2
	socksNoMethod       = 0xff
	socksLoginVersion   = 1
	socksConnect        = 1
	socksIPv4           = 1
	socksName           = 3
	socksIPv6           = 4
	socksFailed         = 1
	socksNotAllowed     = 2
	socksUnreachable    = 4
	socksRefused        = 5
	socksUnknownCommand = 7
)

var errSOCKS = errors.New("no SOCKS request that is served")

// acceptSOCKS reads whom the client wants to reach, once it has shown the password.
func acceptSOCKS(from io.Reader, to io.Writer, password string) (host, port string, err error) {
	if err := loginSOCKS(from, to, password); err != nil {
		return "", "", err
	}
	var request [4]byte
	if _, err := io.ReadFull(from, request[:]); err != nil {
		return "", "", err
	}
	if request[0] != socksVersion || request[1] != socksConnect {
		_, _ = to.Write([]byte{socksVersion, socksUnknownCommand, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
		return "", "", fmt.Errorf("command %d: %w", request[1], errSOCKS)
	}
	switch request[3] {
	case socksIPv4, socksIPv6:
		address := make([]byte, map[byte]int{socksIPv4: 4, socksIPv6: 16}[request[3]])
		if _, err := io.ReadFull(from, address); err != nil {
			return "", "", err
		}
		parsed, _ := netip.AddrFromSlice(address)
		host = parsed.String()
	case socksName:
		name, err := readCounted(from)
		if err != nil {
			return "", "", err
		}
		host = string(name)
	default:
		return "", "", fmt.Errorf("address type %d: %w", request[3], errSOCKS)
	}
	var number [2]byte
	if _, err := io.ReadFull(from, number[:]); err != nil {
		return "", "", err
	}
	return host, strconv.Itoa(int(binary.BigEndian.Uint16(number[:]))), nil
}

func loginSOCKS(from io.Reader, to io.Writer, password string) error {
	var version [1]byte
	if _, err := io.ReadFull(from, version[:]); err != nil {
		return err
	}
	methods, err := readCounted(from)
	if err != nil {
		return err
	}
	offered := false
	for _, method := range methods {
		offered = offered || method == socksPassword
	}
	if version[0] != socksVersion || !offered {
		_, _ = to.Write([]byte{socksVersion, socksNoMethod})
		return fmt.Errorf("version %d without a password: %w", version[0], errSOCKS)
	}
	if _, err := to.Write([]byte{socksVersion, socksPassword}); err != nil {
		return err
	}
	if _, err := io.ReadFull(from, version[:]); err != nil {
		return err
	}
	if _, err := readCounted(from); err != nil { // the user's name, which says nothing
		return err
	}
	given, err := readCounted(from)
	if err != nil {
		return err
	}
	if version[0] != socksLoginVersion || subtle.ConstantTimeCompare(given, []byte(password)) != 1 {
		_, _ = to.Write([]byte{socksLoginVersion, socksFailed})
		return fmt.Errorf("another password: %w", errSOCKS)
	}
	_, err = to.Write([]byte{socksLoginVersion, 0})
	return err
}

// readCounted reads one byte and as many more as it says.
func readCounted(from io.Reader) ([]byte, error) {
	var length [1]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	content := make([]byte, length[0])
	_, err := io.ReadFull(from, content)
	return content, err
}

// replySOCKS tells what came of the connection.
func replySOCKS(to io.Writer, failure error) {
	code := byte(0)
	switch {
	case failure == nil:
	case errors.Is(failure, errNotPermitted):
		code = socksNotAllowed
	case errors.Is(failure, unix.ECONNREFUSED):
		code = socksRefused
	default:
		code = socksUnreachable
	}
	_, _ = to.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
}
