package vulnerabilities

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// database makes one that knows of one vulnerability: in strings.Title, whatever Go's
// version.
func database(t *testing.T, modified time.Time) string {
	t.Helper()
	at := modified.UTC().Format(time.RFC3339)
	files := map[string]string{
		"index/db.json":      fmt.Sprintf(`{"modified": %q}`, at),
		"index/modules.json": fmt.Sprintf(`[{"path": "stdlib", "vulns": [{"id": "GO-2026-9999", "modified": %q}]}]`, at),
		"index/vulns.json":   fmt.Sprintf(`[{"id": "GO-2026-9999", "modified": %q}]`, at),
		"ID/GO-2026-9999.json": fmt.Sprintf(`{"schema_version": "1.3.1", "id": "GO-2026-9999", "modified": %q, "published": %q,
			"summary": "Titles", "details": "Titles are dangerous.", "database_specific": {"url": "https://pkg.go.dev/vuln/GO-2026-9999"},
			"affected": [{"package": {"name": "stdlib", "ecosystem": "Go"},
				"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
				"ecosystem_specific": {"imports": [{"path": "strings", "symbols": ["Title"]}]}}]}`, at, at),
	}
	dir := t.TempDir()
	write(t, dir, files)
	return "file://" + dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// program makes one that calls the function of that name in strings.
func program(t *testing.T, function string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":  "module example.com/program\n\ngo 1.26.0\n",
		"main.go": "package main\n\nimport \"strings\"\n\nfunc main() { println(strings." + function + "(\"x\")) }\n",
	})
	return dir
}

func TestScan(t *testing.T) {
	now := time.Now()
	young, old, missing := database(t, now.Add(-24*time.Hour)), database(t, now.Add(-100*24*time.Hour)), "file://"+t.TempDir()
	dangerous, safe := program(t, "Title"), program(t, "ToUpper")
	for name, row := range map[string]struct {
		database, module, required string
		fails                      bool
		says                       string
	}{
		"what is called":                 {young, dangerous, "", true, "GO-2026-9999"},
		"what is not called":             {young, safe, "required", false, "none known"},
		"no database":                    {missing, dangerous, "", false, "not looked for"},
		"no database where it has to be": {missing, safe, "required", true, "cannot be read"},
		"an old one":                     {old, safe, "", false, "100 days old"},
		"an old one finds":               {old, dangerous, "", true, "GO-2026-9999"},
		"an old one where it has to be":  {old, safe, "required", true, "want 14 or less"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scan := exec.Command("./scan", row.module, ".")
			scan.Env = append(os.Environ(), "GOVULNDB="+row.database, "VULNERABILITIES="+row.required)
			output, err := scan.CombinedOutput()
			var failed *exec.ExitError
			if errors.As(err, &failed) != row.fails || !strings.Contains(string(output), row.says) {
				t.Errorf("%v, want a failure: %v, and %q in\n%s", err, row.fails, row.says, output)
			}
		})
	}
}
