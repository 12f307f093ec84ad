package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sources are what the image of a driver is built from: its Dockerfile and what
// .dockerignore leaves of the repository that the Dockerfile copies.
func (d driver) sources() []string {
	return []string{d.dockerfile, ".dockerignore", "LICENSE", "csicommon", d.name, "hack/licences"}
}

// sum tells apart what a driver's image is built from: files, arguments, and the archives of
// the images that it starts from.
func (d driver) sum(root string, arguments []string, bases ...string) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q\n", arguments)
	for _, base := range bases {
		info, err := os.Stat(base)
		if err != nil {
			return "", fmt.Errorf("look at what %s starts from: %w", d.image, err)
		}
		_, _ = fmt.Fprintf(sum, "%s %d %d\n", base, info.Size(), info.ModTime().UnixNano())
	}
	for _, source := range d.sources() {
		// In the order of names.
		err := filepath.WalkDir(filepath.Join(root, source), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			content := sha256.New()
			if _, err := io.Copy(content, file); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(sum, "%q %x\n", name, content.Sum(nil))
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("read what %s is built from: %w", d.image, err)
		}
	}
	return fmt.Sprintf("%x\n", sum.Sum(nil)), nil
}

// from is the file beside an archive that says what it was built from.
func from(archive string) string { return archive + ".from" }

// isFrom tells whether there is an archive, and that it was built from what the sum says.
func isFrom(archive, sum string) (bool, error) {
	said, err := os.ReadFile(from(archive))
	if err == nil {
		_, err = os.Stat(archive)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return string(said) == sum, err
}
