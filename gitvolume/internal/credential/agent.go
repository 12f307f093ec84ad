package credential

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

var (
	errReadOnly   = errors.New("the agent has one key, which cannot be changed")
	errUnknownKey = errors.New("the agent does not have that key")
	errSHA1       = errors.New("the agent does not sign with SHA-1")
)

// signer is the agent of one connection of ssh. It lists one key, signs with it and
// does nothing else that the agent protocol offers.
type signer struct {
	key    ssh.Signer
	public ssh.PublicKey
	// listed and signed are told what ssh asked for.
	listed, signed func()
}

func newSigner(private crypto.Signer) (*signer, error) {
	key, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		return nil, fmt.Errorf("make a signer of the private key: %w", err)
	}
	return &signer{key: key, public: key.PublicKey()}, nil
}

// serveAgent answers a connection of ssh; ssh opens one when it is about to log in and
// keeps it until it has.
func (s *signer) serveAgent(conn net.Conn, listed, signed func()) {
	connected := *s
	connected.listed, connected.signed = listed, signed
	_ = agent.ServeAgent(&connected, conn)
}

// List returns the key.
func (s *signer) List() ([]*agent.Key, error) {
	s.listed()
	return []*agent.Key{{Format: s.public.Type(), Blob: s.public.Marshal(), Comment: "volume"}}, nil
}

// Sign signs as SignWithFlags does without flags.
func (s *signer) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return s.SignWithFlags(key, data, 0)
}

// SignWithFlags signs with the hash that an RSA key is asked for: servers refuse SHA-1.
func (s *signer) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	if !bytes.Equal(key.Marshal(), s.public.Marshal()) {
		return nil, errUnknownKey
	}
	s.signed()
	if s.public.Type() != ssh.KeyAlgoRSA {
		return s.key.Sign(rand.Reader, data)
	}
	var algorithm string
	switch {
	case flags&agent.SignatureFlagRsaSha512 != 0:
		algorithm = ssh.KeyAlgoRSASHA512
	case flags&agent.SignatureFlagRsaSha256 != 0:
		algorithm = ssh.KeyAlgoRSASHA256
	default:
		return nil, errSHA1
	}
	rsa, ok := s.key.(ssh.AlgorithmSigner)
	if !ok {
		return nil, errSHA1
	}
	return rsa.SignWithAlgorithm(rand.Reader, data, algorithm)
}

// Extension knows none.
func (s *signer) Extension(string, []byte) ([]byte, error) { return nil, agent.ErrExtensionUnsupported }

// Signers gives nothing away: who may sign does so over the socket.
func (s *signer) Signers() ([]ssh.Signer, error) { return nil, errReadOnly }

// Add is refused.
func (s *signer) Add(agent.AddedKey) error { return errReadOnly }

// Remove is refused.
func (s *signer) Remove(ssh.PublicKey) error { return errReadOnly }

// RemoveAll is refused.
func (s *signer) RemoveAll() error { return errReadOnly }

// Lock is refused.
func (s *signer) Lock([]byte) error { return errReadOnly }

// Unlock is refused.
func (s *signer) Unlock([]byte) error { return errReadOnly }
