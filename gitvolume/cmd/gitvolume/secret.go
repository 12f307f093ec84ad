package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
)

// longestSecret bounds what is read of a key or a token, in bytes.
const longestSecret = 1 << 20

// The keys that a Secret of the files would have.
const (
	secretKey        = "ssh-privatekey"
	secretKnownHosts = "known_hosts"
	secretToken      = "token"
	secretCA         = "ca.crt"
)

// readCredential reads the files that the flags name, as a Secret of them would be read,
// and tells whether the repository can be shown what they hold.
func (o *options) readCredential(url attributes.URL) (*credential.Credential, error) {
	if err := o.checkFit(url); err != nil {
		return nil, err
	}
	read := credential.Anonymous()
	if o.sshKey != "" || o.tokenFile != "" {
		secret, err := o.readSecret()
		if err != nil {
			return nil, err
		}
		if read, err = credential.Parse(secret); err != nil {
			return nil, inFlags(err)
		}
	}
	return read, read.Fits(url, credential.Allowed{Insecure: o.allowInsecure})
}

func (o *options) readSecret() (map[string][]byte, error) {
	secret := map[string][]byte{}
	for _, part := range []struct{ flag, file, key, what string }{
		{"--ssh-key", o.sshKey, secretKey, "the private key"},
		{"--known-hosts", o.knownHosts, secretKnownHosts, "the host keys to trust"},
		{"--token-file", o.tokenFile, secretToken, "the token"},
		{"--ca", o.ca, secretCA, "the certificates to trust"},
	} {
		if part.file == "" {
			continue
		}
		content, err := readFile(part.file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s %s: there is no such file: give the one with %s", part.flag, part.file, part.what)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.flag, err)
		}
		secret[part.key] = content
	}
	return secret, nil
}

// given is how the user knows the host keys that are to be trusted.
func (o *options) given() string { return "--known-hosts " + o.knownHosts }

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, longestSecret+1))
	if err == nil && len(content) > longestSecret {
		err = fmt.Errorf("%q has more than %d bytes, and is none", path, longestSecret)
	}
	return content, err
}

// checkFit says in words of the flags what Fits would say in those of Secrets.
func (o *options) checkFit(url attributes.URL) error {
	switch {
	case url.IsLocal() && (o.sshKey != "" || o.tokenFile != ""):
		return errors.New("--url is a directory of this machine, which takes neither --ssh-key nor --token-file")
	case url.IsSSH() && o.tokenFile != "":
		return errors.New("--url is reached over ssh, which takes --ssh-key and no token; or write an https:// address")
	case url.IsSSH() && o.sshKey == "":
		return errors.New("--url is reached over ssh, which takes --ssh-key FILE: a private key without a passphrase, since no agent is asked")
	case url.IsHTTP() && o.sshKey != "":
		return errors.New("--url is reached over HTTP, which takes --token-file and no key; or write an ssh:// address")
	case url.Scheme == "http" && o.tokenFile != "" && !o.allowInsecure:
		return errors.New("--url sends the token over http://, where everyone on the way can read it: write https://, or set --allow-insecure")
	}
	return nil
}

// inFiles says what is wrong with an address in words of one machine, which has no Secrets.
func (o *options) inFiles(text string) string {
	words := []string{
		"user and token belong in a Secret (keys username and token)", "the token belongs in a file, which --token-file names",
		"a token belongs in a Secret", "a token belongs in a file, which --token-file names",
		"credentials belong in a Secret", "over ssh the credential is a key in a file, which --ssh-key names",
		"a directory of the node", "a directory of this machine",
	}
	if o.allowLocalURLs {
		words = append(words, "; write https://host/path,", "; write its path from the root on, https://host/path,")
	}
	return strings.NewReplacer(words...).Replace(text)
}

// inFlags says an error of Parse in words of the flags. It never holds a secret.
func inFlags(err error) error {
	text := strings.TrimPrefix(err.Error(), credential.ErrMalformed.Error()+": ")
	for key, flag := range map[string]string{
		secretKey: "--ssh-key", secretKnownHosts: "--known-hosts", secretToken: "--token-file", secretCA: "--ca",
	} {
		if rest, found := strings.CutPrefix(text, key); found {
			return errors.New(flag + rest)
		}
	}
	return err
}
