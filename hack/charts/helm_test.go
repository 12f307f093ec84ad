package charts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// helmPath builds helm as make bin/helm does, unless it is there, and returns its path. As a
// tool, Go would compile it without regard to GOFLAGS, and so share nothing with all else.
var helmPath = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../bin/helm")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", path, "helm.sh/helm/v4/cmd/helm")
	cmd.Dir = "../helm"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build helm: %w\n%s", err, said)
	}
	return path, nil
})

// helm runs it, away from the user's own settings and repositories, and returns
// what it wrote and, as an error, what it complained about.
func helm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	path, err := helmPath()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(path, arguments...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
		"HELM_NAMESPACE=", "KUBECONFIG="+filepath.Join(home, "none"))
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}

// template renders the chart, notes and tests too, with the YAML text values on
// top of its defaults.
func (c chart) template(t *testing.T, values string) (string, error) {
	t.Helper()
	return helm(t, "template", c.name, c.dir(), "--namespace", c.namespace, "--values", valuesFile(t, values))
}

func valuesFile(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (c chart) mustTemplate(t *testing.T, values string) string {
	t.Helper()
	rendered, err := c.template(t, values)
	if err != nil {
		t.Fatalf("with the values\n%s\nhelm says: %v", values, err)
	}
	return rendered
}

// readFile returns the text of a file.
func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestClusterVersions(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		for version, accepted := range map[string]bool{"1.28.15": false, "1.29.0": true, "1.33.1-gke.100": true} {
			_, err := helm(t, "template", c.name, c.dir(), "--kube-version", version)
			switch {
			case accepted && err != nil:
				t.Errorf("%s: %v", version, err)
			case !accepted && (err == nil || !strings.Contains(err.Error(), ">=1.29.0-0")):
				t.Errorf("%s: the error is %v, want the version that is needed", version, err)
			}
		}
	})
}

func TestLint(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		for name, values := range map[string]string{"default": c.dir() + "/values.yaml", "full": c.testdata("full.yaml")} {
			if said, err := helm(t, "lint", "--strict", c.dir(), "--values", values); err != nil {
				t.Errorf("%s: %v\n%s", name, err, said)
			}
		}
	})
}
