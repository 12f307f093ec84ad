package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/e2e/page"
)

// Follow does what one of the driver's tutorials tells its reader to, step by step, in a
// directory of its own.
func (d *Driver) Follow(t *testing.T, file string) {
	t.Helper()
	steps, err := page.Steps(filepath.Join(d.Kube.root, d.Docs, file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, step := range steps {
		script := fmt.Sprintf("cd %q\n%s", dir, step.Text)
		switch {
		case step.File != "":
			if err := os.WriteFile(filepath.Join(dir, step.File), []byte(step.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		case step.Prints != "":
			Eventually(t, Patient, fmt.Sprintf("it prints %q:\n%s", step.Prints, step.Text), func() error {
				said, err := d.Kube.Shell(script)
				if err == nil && !strings.Contains(said, step.Prints) {
					err = fmt.Errorf("it prints\n%s", said)
				}
				return err
			})
		default:
			t.Logf("%s", step.Text)
			d.Kube.MustShell(t, script)
		}
	}
}
