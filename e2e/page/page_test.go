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

const tutorial = "# One\n\n<!-- not run -->\n\n```sh\nmake\n```\n\n<!-- file: a.yaml -->\n\n```yaml\na: 1\n```\n\n```sh\nls\n```\n\n" +
	"```\nprinted\n```\n\ntext\n\n```sh\ncat a.yaml\n```\n\n<!-- wait: a: 1 -->\n\nmore\n"

func TestSteps(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(tutorial), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Steps(file)
	want := []Step{
		{Language: "yaml", Text: "a: 1\n", File: "a.yaml"},
		{Language: "sh", Text: "ls\n"},
		{Language: "sh", Text: "cat a.yaml\n", Prints: "a: 1"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := Steps(filepath.Join(t.TempDir(), "none.md")); err == nil {
		t.Error("a page that is not there has steps")
	}
}
