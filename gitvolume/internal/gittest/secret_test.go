package gittest

import (
	"encoding/base64"
	"os/exec"
	"path/filepath"
	"testing"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failures int
	cleanups []func()
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failures++ }
func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }

func TestSecretSearchFinds(t *testing.T) {
	const secret = "the-secret-of-this-test"
	for name, cmd := range map[string]*exec.Cmd{
		"nowhere":          exec.Command("sleep", "600"),
		"the command line": exec.Command("sh", "-c", "sleep 600; : "+secret),
		"the environment":  exec.Command("sleep", "600"),
	} {
		if name == "the environment" {
			cmd.Env = []string{"X=" + base64.StdEncoding.EncodeToString([]byte(secret))}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := &recorder{TB: t}
		search := SearchSecrets(r, secret)
		until(t, func() bool { return search.Saw(filepath.Base(cmd.Args[0])) })
		until(t, func() bool {
			search.mu.Lock()
			defer search.mu.Unlock()
			return name == "nowhere" || len(search.found) > 0
		})
		endTree(cmd.Process.Pid)
		_ = cmd.Wait()
		for _, cleanup := range r.cleanups {
			cleanup()
		}
		if (r.failures > 0) != (name != "nowhere") {
			t.Errorf("with a secret in %s the test fails %d times", name, r.failures)
		}
	}
}

func TestSecretSearchFindsFiles(t *testing.T) {
	const secret = "the-secret-of-this-test"
	dir := t.TempDir()
	r := &recorder{TB: t}
	search := SearchSecrets(t, secret)
	search.Files(r, dir)
	if r.failures > 0 {
		t.Error("a secret is found in an empty directory")
	}
	write(t, filepath.Join(dir, "file"), "x"+secret+"y")
	if search.Files(r, dir); r.failures != 1 {
		t.Errorf("a file with a secret fails a test %d times", r.failures)
	}
}
