package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrObjectFormat says that a repository has ids other than those of SHA-1.
var ErrObjectFormat = errors.New("only repositories with SHA-1 object ids can be used")

// checkFormat refuses a repository of another object format before anything of it is
// written or removed: its refs would be taken for damaged.
func checkFormat(dir string) error {
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	return parseConfig(config, func(in configSection, key, value string) error {
		if in.of == "extensions" && key == "objectformat" && !strings.EqualFold(value, "sha1") {
			return fmt.Errorf("the repository has the object format %q: %w", value, ErrObjectFormat)
		}
		return nil
	})
}
