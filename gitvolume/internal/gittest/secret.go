package gittest

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// searchPause is how long the search of processes rests between two looks.
const searchPause = 2 * time.Millisecond

// SecretSearch looks for secrets where they must not be. It watches the command lines
// and environments of all processes, while it runs, and looks into directories and texts
// when it is told to.
type SecretSearch struct {
	secrets []string
	stop    chan struct{}
	stopped sync.WaitGroup

	mu   sync.Mutex
	seen map[string]bool
	// found holds places, without the secret.
	found []string
}

// SearchSecrets starts a search for the secrets, as they are and in base64. It ends with
// the test, which fails if a process had one.
func SearchSecrets(t testing.TB, secrets ...string) *SecretSearch {
	t.Helper()
	s := &SecretSearch{stop: make(chan struct{}), seen: map[string]bool{}}
	for _, secret := range secrets {
		if len(secret) < 8 {
			t.Fatalf("a secret of %d bytes is found everywhere", len(secret))
		}
		s.secrets = append(s.secrets, secret, base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	s.stopped.Go(s.watch)
	t.Cleanup(func() {
		close(s.stop)
		s.stopped.Wait()
		for _, place := range s.found {
			t.Errorf("a secret is in %s", place)
		}
	})
	return s
}

// Secrets are the lines of a private key's file, each of which must be nowhere.
func (k Key) Secrets() []string {
	var lines []string
	for line := range strings.Lines(k.PEM) {
		if line = strings.TrimSpace(line); len(line) > 30 && !strings.HasPrefix(line, "-----") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Text fails the test if a text, which comes from the place, holds a secret.
func (s *SecretSearch) Text(t testing.TB, place, text string) {
	t.Helper()
	if s.in(text) {
		t.Errorf("a secret is in %s", place)
	}
}

// Files fails the test if a file below the directories has a secret in its content, its
// name, or the destination of a link.
func (s *SecretSearch) Files(t testing.TB, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			s.Text(t, "a file's name", path)
			if link, err := os.Readlink(path); err == nil {
				s.Text(t, "the link "+path, link)
			}
			if !entry.Type().IsRegular() {
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s.Text(t, path, string(content))
			return nil
		})
		if err != nil {
			t.Errorf("look for secrets: %v", err)
		}
	}
}

// Saw tells whether a program of the name was running at a look: a search that saw
// nobody proves nothing.
func (s *SecretSearch) Saw(program string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[program]
}

func (s *SecretSearch) in(text string) bool {
	for _, secret := range s.secrets {
		if strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

func (s *SecretSearch) watch() {
	for {
		s.look()
		select {
		case <-s.stop:
			return
		case <-time.After(searchPause):
		}
	}
}

func (s *SecretSearch) look() {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		arguments, err := os.ReadFile(line)
		if err != nil {
			continue // it has ended
		}
		program, _, _ := strings.Cut(string(arguments), "\x00")
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(line), "environ"))
		s.mu.Lock()
		s.seen[filepath.Base(program)] = true
		if s.in(string(arguments)) {
			s.found = append(s.found, "the command line of "+filepath.Base(program))
		}
		if s.in(string(environment)) {
			s.found = append(s.found, "the environment of "+filepath.Base(program))
		}
		s.mu.Unlock()
	}
}
