// Package errortext makes errors say the same thing the same way each time: they
// become the texts of Events, which are counted up only where they repeat byte for
// byte. It must never change which error it is to errors.Is.
package errortext

import (
	"errors"
	"io/fs"
	"os"
)

// WithoutPath drops the path from an error of package os, for a path that has a
// name made up for one call. What was wrapped around it goes with it.
func WithoutPath(err error) error {
	var link *os.LinkError
	var path *fs.PathError
	switch {
	case errors.As(err, &link):
		return link.Err
	case errors.As(err, &path):
		return path.Err
	}
	return err
}
