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

func TestStateOf(t *testing.T) {
	rows := []struct {
		name, line, want string
	}{
		{"a control machine", "/repo/bin/cluster machine /var/lib/other/control/machine.json ", "/var/lib/other"},
		{"a node", "/repo/bin/cluster machine /var/lib/other/node-1/machine.json ", ""},
		{"an editor", "vi /var/lib/other/control/machine.json ", ""},
		{"another command", "grep machine /x/control/machine.json.bak ", ""},
		{"a kernel thread", "", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := stateOf([]byte(strings.ReplaceAll(row.line, " ", "\x00"))); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
