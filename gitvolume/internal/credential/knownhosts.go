package credential

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"liken.sh/csicommon/durable"
	"liken.sh/gitvolume/internal/attributes"
)

// KnownHosts are the host keys that were trusted because they were the first seen of
// their host and port: for the volumes whose Secret does not say which to trust. They
// are kept in one file of OpenSSH's format, in which an operator can delete the line of
// a server that was given a new key.
type KnownHosts struct {
	dir string
	// mu makes "no key is known, so this is the first" one step for connections that
	// are made at the same time.
	mu sync.Mutex
}

const (
	knownHostsFile = "known_hosts"
)

// OpenKnownHosts keeps keys in a directory, which it makes if it is not there. Only one
// KnownHosts at a time may use a directory.
func OpenKnownHosts(dir string) (*KnownHosts, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of known hosts: %w", err)
	}
	return &KnownHosts{dir: dir}, nil
}

func (k *KnownHosts) path() string { return filepath.Join(k.dir, knownHostsFile) }

// trusted returns the keys kept for a server.
func (k *KnownHosts) trusted(server string) ([]ssh.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys, _, err := k.read(server)
	return keys, err
}

// firstSeen returns the keys kept for a server, which is the presented one from now on
// if there was none. It is on disk when firstSeen returns: else a crash would let
// another key be the first.
func (k *KnownHosts) firstSeen(server string, presented ssh.PublicKey) ([]ssh.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys, content, err := k.read(server)
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	if err := k.write(content + line(server, presented)); err != nil {
		return nil, fmt.Errorf("keep the host key of %s: %w", server, err)
	}
	return []ssh.PublicKey{presented}, nil
}

// read returns the server's keys and the whole file. A line that cannot be read, or has a
// marker such as @revoked, is an error only when it is the server's: it says that a key is
// not to be trusted, or may have said so.
func (k *KnownHosts) read(server string) ([]ssh.PublicKey, string, error) {
	path := k.path()
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the known hosts: %w", err)
	}
	var keys []ssh.PublicKey
	for text := range strings.Lines(string(content)) {
		fields := strings.Fields(text)
		marked := len(fields) > 0 && strings.HasPrefix(fields[0], "@")
		if marked {
			fields = fields[1:]
		}
		if len(fields) == 0 || !isNamed(server, fields[0]) {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(strings.Join(fields[1:], " ")))
		if err != nil || marked {
			return nil, "", fmt.Errorf("%s holds a line for %s that cannot be read or has a marker: delete it, or write the server and the key to trust", path, server)
		}
		keys = append(keys, key)
	}
	return keys, string(content), nil
}

// write replaces the file.
func (k *KnownHosts) write(content string) error {
	return durable.Replace(k.path(), []byte(content), 0o600)
}

// line is a line of known_hosts.
func line(server string, key ssh.PublicKey) string {
	return server + " " + string(ssh.MarshalAuthorizedKey(key))
}

// serverName is how known_hosts writes a URL's server.
func serverName(u attributes.URL) string {
	if u.Port == 22 {
		return u.CanonicalHost()
	}
	return "[" + u.CanonicalHost() + "]:" + strconv.Itoa(u.Port)
}

// hostPort is how people write it.
func hostPort(u attributes.URL) string {
	return net.JoinHostPort(u.CanonicalHost(), strconv.Itoa(u.Port))
}
