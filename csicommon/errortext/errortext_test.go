package errortext

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWithoutPath(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "made-up")
	_, stat := os.Stat(missing)
	other := errors.New("something else")
	rows := []struct {
		name string
		err  error
		want string
	}{
		{"a path", stat, "no such file or directory"},
		{"a path in an error around it", fmt.Errorf("look: %w", stat), "no such file or directory"},
		{"two paths", os.Rename(missing, missing+"-2"), "no such file or directory"},
		{"an error without", syscall.EIO, "input/output error"},
		{"another error", other, "something else"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := WithoutPath(row.err)
			if got.Error() != row.want || errors.Is(row.err, fs.ErrNotExist) != errors.Is(got, fs.ErrNotExist) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	if WithoutPath(nil) != nil {
		t.Error("no error became one")
	}
}
