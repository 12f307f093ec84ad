package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"liken.sh/gitvolume/internal/history"
)

// BlameForOpening is what opening the repository in the directory failed of: of the repository,
// as history.ErrDamaged, unless the machine opens nothing else there either, or it opens now.
// libgit2 gives no number of what the kernel said, and what lacked may be there by now.
func BlameForOpening(dir string, failed error) error {
	file, err := os.Open(filepath.Join(dir, "HEAD"))
	if err == nil {
		err = file.Close()
	}
	if IsOfTheMachine(errors.Join(failed, err)) {
		return errors.Join(failed, err)
	}
	if again, err := history.Open(dir); err == nil {
		again.Close()
		return failed
	}
	return fmt.Errorf("%w: %w", history.ErrDamaged, failed)
}
