package credential

import (
	"fmt"
	"strings"
)

// noKnownHosts is the file of known hosts that has none.
const noKnownHosts = "/dev/null"

// sshOptions make ssh depend on nothing of the machine and ask nobody. The key comes
// from the agent, which has only that one: with IdentitiesOnly ssh would leave out what
// no file names. How ssh reaches the server (HostName, ProxyCommand) is left open.
func sshOptions(agentSocket, knownHosts, command string) []string {
	options := []string{"-F", "/dev/null"}
	for _, option := range []string{
		"BatchMode=yes",
		"IdentityAgent=" + agentSocket,
		"IdentityFile=none",
		"PKCS11Provider=none",
		"PreferredAuthentications=publickey",
		// ssh tries one kind of signature for an RSA key, and servers of OpenSSH before 9.6
		// do not tell truly which they take; a server that takes one only takes this one.
		"PubkeyAcceptedAlgorithms=^rsa-sha2-256",
		"PasswordAuthentication=no",
		"KbdInteractiveAuthentication=no",
		"GSSAPIAuthentication=no",
		"HostbasedAuthentication=no",
		"AddKeysToAgent=no",
		"ForwardAgent=no",
		"ForwardX11=no",
		"ClearAllForwardings=yes",
		"ControlMaster=no",
		"ControlPath=none",
		"PermitLocalCommand=no",
		"CanonicalizeHostname=no",
		"EscapeChar=none",
		"RequestTTY=no",
		"StrictHostKeyChecking=yes",
		"UserKnownHostsFile=" + knownHosts,
		"GlobalKnownHostsFile=" + noKnownHosts,
		// ssh asks it for keys beyond the file, and tells it which one the server has.
		"KnownHostsCommand=" + command + " " + operationHostKey + " %I %H %K",
		"CheckHostIP=no",
		"UpdateHostKeys=no",
		"VerifyHostKeyDNS=no",
		"ConnectTimeout=30",
		"ConnectionAttempts=1",
		// The driver itself watches the bytes that come: an sshd that answers while git hangs
		// behind it would seem to be alive for good.
		"ServerAliveInterval=0",
		"TCPKeepAlive=yes",
		"LogLevel=ERROR",
	} {
		options = append(options, "-o", option)
	}
	return options
}

// checkPlain refuses a word that ssh_config, a shell or git's configuration would read
// as something else than itself; quoting for all three at once is no thing to rely on.
func checkPlain(word string) error {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,=@:"
	if word == "" || strings.Trim(word, plain) != "" {
		return fmt.Errorf("%q cannot be passed to git and ssh: only letters, digits and %q are", word, "/._-+,=@:")
	}
	return nil
}
