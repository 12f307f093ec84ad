package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A second command waits for the first, and goes on with a directory that is there
// where the first deleted it.
func TestLockedDirectoryMayBeDeleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "var", "state")
	unlock, err := lockDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		unlock func()
		err    error
	}
	second := make(chan result, 1)
	go func() {
		unlock, err := lockDirectory(dir)
		second <- result{unlock, err}
	}()
	select {
	case <-second:
		t.Fatal("two have the lock")
	case <-time.After(100 * time.Millisecond):
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	unlock()
	got := <-second
	if got.err != nil {
		t.Fatal(got.err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	got.unlock()
	if _, err := os.Stat(dir); err == nil {
		t.Error("an empty state is left over")
	}
}

func TestUnlockingKeepsState(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unlock()
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); err != nil {
		t.Error(err)
	}
}

// Whoever has the lock is asked by nobody else, and a lock that nobody has stops nobody,
// whatever the file says.
func TestNothingChangesUnderTests(t *testing.T) {
	t.Setenv(testsVariable, "")
	name := filepath.Join(t.TempDir(), "e2e.lock")
	if err := noTestsRun(name); err != nil {
		t.Errorf("nobody ever ran tests: %v", err)
	}
	if err := os.WriteFile(name, []byte("process 7 in /home/eva/liken\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := noTestsRun(name); err != nil {
		t.Errorf("tests have ended: %v", err)
	}
	unlock, err := lockFile(name)
	if err != nil {
		t.Fatal(err)
	}
	err = noTestsRun(name)
	if err == nil || !strings.Contains(err.Error(), "(process 7 in /home/eva/liken)") || strings.Contains(err.Error(), "\n") {
		t.Errorf("tests run: got %v", err)
	}
	t.Setenv(testsVariable, "1")
	if err := noTestsRun(name); err != nil {
		t.Errorf("the tests themselves are refused: %v", err)
	}
	t.Setenv(testsVariable, "")
	unlock()
	if err := noTestsRun(name); err != nil {
		t.Errorf("after they ended: %v", err)
	}
}

// The two sides of the lock are written in two languages.
func TestTheScriptHasTheSameLock(t *testing.T) {
	script, err := os.ReadFile("../e2e")
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"lock=" + testsLock + "\n", "export " + testsVariable + "=1\n"} {
		if !strings.Contains(string(script), words) {
			t.Errorf("hack/e2e does not have %q", words)
		}
	}
}
