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

const (
	// chart is the per-node driver's, seen from this package, and docs its
	// documentation.
	chart = "../../charts/pernode"
	docs  = "../../pernode/docs"
	// release and namespace are what the chart is rendered for.
	release   = "pernode"
	namespace = "per-node"
)

// helmPath builds helm, unless Go has it in its cache, and returns its path.
var helmPath = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "tool", "-n", "helm")
	cmd.Dir = "../helm"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var said bytes.Buffer
	cmd.Stderr = &said
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build helm: %w\n%s", err, said.Bytes())
	}
	return strings.TrimSpace(string(path)), nil
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
func template(t *testing.T, values string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return helm(t, "template", release, chart, "--namespace", namespace, "--values", file)
}

func mustTemplate(t *testing.T, values string) string {
	t.Helper()
	rendered, err := template(t, values)
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

// full is a values file that sets everything to something else than its default.
func full(t *testing.T) string {
	t.Helper()
	return readFile(t, "testdata", "full.yaml")
}

func TestClusterVersions(t *testing.T) {
	t.Parallel()
	for version, accepted := range map[string]bool{"1.28.15": false, "1.29.0": true, "1.33.1-gke.100": true} {
		_, err := helm(t, "template", release, chart, "--kube-version", version)
		switch {
		case accepted && err != nil:
			t.Errorf("%s: %v", version, err)
		case !accepted && (err == nil || !strings.Contains(err.Error(), ">=1.29.0-0")):
			t.Errorf("%s: the error is %v, want the version that is needed", version, err)
		}
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"default": chart + "/values.yaml", "full": "testdata/full.yaml"} {
		if said, err := helm(t, "lint", "--strict", chart, "--values", values); err != nil {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}
