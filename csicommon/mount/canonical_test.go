package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestCanonical(t *testing.T) {
	root := realTempDir(t)
	mkdir(t, filepath.Join(root, "real", "pods", "1"))
	mkdir(t, filepath.Join(root, "elsewhere"))
	mkdir(t, filepath.Join(root, "real", "pod (deleted)"))
	write(t, filepath.Join(root, "real", "file"))
	for link, to := range map[string]string{
		"kl": "real", "abs": filepath.Join(root, "real"), "chain": "kl", "dangling": "nowhere",
		"real/pods/1/link": "/etc", "elsewhere/down": "../real/pods",
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	mount := root + "/real/pods/1/mount"
	for spelling, want := range map[string]string{
		root + "/real/pods/1/mount":          mount,
		root + "/kl/pods/1/mount":            mount,
		root + "/abs/pods/1/mount":           mount,
		root + "/chain/pods/1/mount":         mount,
		root + "/real//pods/1//mount":        mount,
		root + "/real/./pods/1/./mount":      mount,
		root + "/real/pods/1/mount/":         mount,
		root + "/real/pods/1/mount/.":        mount,
		root + "/real/pods/1/mount/.//./":    mount,
		root + "/real/pods/../pods/1/mount":  mount,
		"//" + root[1:] + "/kl/pods/1/mount": mount,
		// The link's own "..", not that of the directory it lies in.
		root + "/elsewhere/down/../pods/1/mount": mount,
		// Named as the kernel marks a directory that is gone.
		root + "/kl/pod (deleted)/mount": root + "/real/pod (deleted)/mount",
		// The last component is the target itself: never followed.
		root + "/kl/pods/1/link": root + "/real/pods/1/link",
		root + "/kl":             root + "/kl",
		"/proc":                  "/proc",
	} {
		if got, err := Canonical(spelling); err != nil || got != want {
			t.Errorf("Canonical(%q) = %q, %v, want %q", spelling, got, err, want)
		}
	}
	for spelling, want := range map[string]error{
		"":                          ErrPath,
		"/":                         ErrPath,
		"//":                        ErrPath,
		"/.":                        ErrPath,
		"/./.":                      ErrPath,
		"relative/mount":            ErrPath,
		"./mount":                   ErrPath,
		root + "/real/..":           ErrPath,
		root + "/real/../":          ErrPath,
		root + "/real/a\x00b":       ErrPath,
		root + "/nowhere/mount":     fs.ErrNotExist,
		root + "/dangling/mount":    fs.ErrNotExist,
		root + "/real/no/pod/mount": fs.ErrNotExist,
	} {
		if got, err := Canonical(spelling); !errors.Is(err, want) {
			t.Errorf("Canonical(%q) = %q, %v, want error %v", spelling, got, err, want)
		}
	}
	if got, err := Canonical(root + "/real/file/mount"); err == nil {
		t.Errorf("Canonical below a file = %q, want an error", got)
	}
}
