package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Entry is one file of a layer.
type Entry struct {
	// Path is absolute, as in the image.
	Path string
	// Exactly one of these says what it is; none makes a directory.
	From    string // a file or a whole tree of the host
	Link    string // a symlink's target
	Content string // a file's content
	// Mode is for directories and Content; 0 is 0755 and 0644.
	Mode fs.FileMode
}

// WriteLayer writes a layer as a tar file. All belongs to root.
func WriteLayer(out io.Writer, entries []Entry) error {
	layer := tar.NewWriter(out)
	for _, entry := range entries {
		if err := writeEntry(layer, entry); err != nil {
			return fmt.Errorf("add %s to a layer: %w", entry.Path, err)
		}
	}
	return layer.Close()
}

func writeEntry(layer *tar.Writer, entry Entry) error {
	name := entry.Path[1:]
	mode := func(usual fs.FileMode) int64 {
		if entry.Mode == 0 {
			entry.Mode = usual
		}
		return int64(entry.Mode.Perm()) | sticky(entry.Mode)
	}
	switch {
	case entry.From != "":
		return writeTree(layer, entry.From, name)
	case entry.Link != "":
		return layer.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: entry.Link, Mode: 0o777})
	case entry.Content != "":
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode(0o644), Size: int64(len(entry.Content))}
		if err := layer.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.WriteString(layer, entry.Content)
		return err
	}
	return layer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode(0o755)})
}

// sticky is the tar format's bit, without which a /tmp is everybody's to delete in.
func sticky(mode fs.FileMode) int64 {
	if mode&fs.ModeSticky != 0 {
		return 0o1000
	}
	return 0
}

func writeTree(layer *tar.Writer, from, name string) error {
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		var target string
		if info.Mode()&fs.ModeSymlink != 0 {
			if target, err = os.Readlink(file); err != nil {
				return err
			}
		}
		header, err := tar.FileInfoHeader(info, target)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		header.Name = path.Join(name, filepath.ToSlash(relative))
		header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
		if err := layer.WriteHeader(header); err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		content, err := os.Open(file)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(layer, content)
		return err
	})
}
