package page

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const sample = "# One\n\n```yaml\n# Two\na: 1\n```\n\ntext\n\n```sh\nls\n```\n\n```yaml\nb: 2\n```\n\n## Two\n\n```yaml\nc: 3\n```\n"

func TestBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name, under, language string
		want                  []string
	}{
		{"a comment in a block is no heading", "One", "yaml", []string{"# Two\na: 1\n", "b: 2\n"}},
		{"another language", "One", "sh", []string{"ls\n"}},
		{"the last section", "Two", "yaml", []string{"c: 3\n"}},
		{"no such block", "Two", "sh", nil},
		{"no such heading", "Three", "sh", nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := Blocks(file, row.under, row.language)
			if !slices.Equal(got, row.want) || (err == nil) != (row.want != nil) {
				t.Errorf("got %q, %v, want %q", got, err, row.want)
			}
		})
	}
}
