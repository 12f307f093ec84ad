package main

import (
	"errors"
	"os"
	"path/filepath"
)

// signer signs what is in a registry, and verifies it as a user does.
type signer struct {
	tools
	// key is a private key's file, for a rehearsal. Where it is empty, the workflow's own
	// identity signs, which is in a certificate and in the public log: nobody keeps a key.
	key string
	// identity is the workflow's, as the certificate has it.
	identity string
}

// issuer is who vouches for a workflow's identity.
const issuer = "https://token.actions.githubusercontent.com"

// throwAwayKey makes a key for a rehearsal, in that directory.
func throwAwayKey(t tools, dir string) (signer, error) {
	t.env = append(t.env, "COSIGN_PASSWORD=")
	t.dir = dir
	_, err := t.run(t.cosign, "generate-key-pair")
	return signer{tools: t, key: filepath.Join(dir, "cosign.key")}, err
}

// releaseWorkflow is the one whose jobs publish. A certificate names it, not the workflow
// that calls it.
const releaseWorkflow = ".github/workflows/release.yaml"

// workflowIdentity is that of the workflow this runs in.
func workflowIdentity(t tools) (signer, error) {
	if os.Getenv("GITHUB_ACTIONS") != "true" {
		return signer{}, errors.New("this is no run of a workflow, which alone signs; make release-dry-run rehearses a release")
	}
	return signer{tools: t, identity: workflow()}, nil
}

// workflow is the release's, at its tag.
func workflow() string { return source() + "/" + releaseWorkflow + "@" + os.Getenv("GITHUB_REF") }

// source is the repository's address.
func source() string { return os.Getenv("GITHUB_SERVER_URL") + "/" + os.Getenv("GITHUB_REPOSITORY") }

func (s signer) how() []string {
	if s.key == "" {
		return nil
	}
	return []string{"--key", s.key, "--use-signing-config=false", "--tlog-upload=false"}
}

// sign signs the digest, and where it is an index, each image in it.
func (s signer) sign(reference string) error {
	_, err := s.run(s.cosign, append(append([]string{"sign", "--yes", "--recursive"}, s.how()...), reference)...)
	return err
}

// attest signs a statement about the digest.
func (s signer) attest(reference, kind, predicate string) error {
	_, err := s.run(s.cosign, append(append([]string{"attest", "--yes", "--type", kind, "--predicate", predicate}, s.how()...), reference)...)
	return err
}

func (s signer) who() []string {
	if s.key == "" {
		return []string{"--certificate-identity", s.identity, "--certificate-oidc-issuer", issuer}
	}
	return []string{"--key", filepath.Join(filepath.Dir(s.key), "cosign.pub"), "--insecure-ignore-tlog=true"}
}

// verify fails unless this signer signed the digest.
func (s signer) verify(reference string) error {
	_, err := s.run(s.cosign, append(append([]string{"verify"}, s.who()...), reference)...)
	return err
}

// attested fails unless this signer made a statement of that kind about the digest.
func (s signer) attested(reference, kind string) error {
	_, err := s.run(s.cosign, append(append([]string{"verify-attestation", "--type", kind}, s.who()...), reference)...)
	return err
}
