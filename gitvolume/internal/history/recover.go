package history

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	git "github.com/libgit2/git2go/v34"
	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/errortext"
	"liken.sh/gitvolume/internal/object"
)

// Recovered is what Recover did.
type Recovered struct {
	Locks   []string // Lock files removed, by their names in the repository.
	Refs    []string // Refs removed, whose files held no id.
	Objects []string // Objects removed, whose files were cut off.
	Indexes []string // Packs whose index was made anew.
}

// Recover repairs what a killed process or a power cut has left in a repository, so
// that nobody has to. The caller knows that nobody works on it, neither this process
// nor git: nothing in a lock file tells whether its maker lives. That is so when the
// driver starts and before it starts git. What is removed was of no use: it cannot be
// read, and while it is there git neither reads nor replaces it.
//
// A ref that was removed keeps the value that packed-refs has of it, if any.
func Recover(dir string) (Recovered, error) {
	if err := settle(); err != nil {
		return Recovered{}, err
	}
	if err := checkFormat(dir); err != nil {
		return Recovered{}, fmt.Errorf("recover the repository: %w", err)
	}
	r := recovery{dir: dir}
	err := errors.Join(r.locks(), r.refs(), r.loose(), r.indexes())
	if err != nil {
		err = fmt.Errorf("recover the repository: %w", err)
	}
	return r.done, err
}

type recovery struct {
	dir  string
	done Recovered
}

// locks removes lock files of the repository and of its refs.
func (r *recovery) locks() error {
	for _, dir := range []string{".", "objects/info", "objects/pack"} {
		found, err := listSuffix(filepath.Join(r.dir, dir), ".lock")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look for locks: %w", err)
		}
		for _, path := range found {
			if err := r.remove(path, &r.done.Locks); err != nil {
				return err
			}
		}
	}
	return r.walk("refs", func(path string) error {
		if strings.HasSuffix(path, ".lock") {
			return r.remove(path, &r.done.Locks)
		}
		return nil
	})
}

// refs removes the files of refs that name nothing.
func (r *recovery) refs() error {
	return r.walk("refs", func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read a ref: %w", err)
		}
		text := strings.TrimSpace(string(content))
		if _, err := object.Parse(text); err == nil || strings.HasPrefix(text, "ref: ") {
			return nil
		}
		return r.remove(path, &r.done.Refs)
	})
}

// loose removes the files of objects that were cut off.
func (r *recovery) loose() error {
	repository := Repository{dir: r.dir}
	return r.walk("objects", func(path string) error {
		dir, name := filepath.Split(path)
		id, err := object.Parse(filepath.Base(dir) + name)
		if err != nil {
			return nil //nolint:nilerr // It is a file of another kind, such as a pack.
		}
		file, err := repository.openLoose(id)
		if err == nil && file != nil {
			var n int64
			n, err = io.Copy(io.Discard, file)
			if err == nil && n != file.size {
				err = ErrDamaged
			}
			err = errors.Join(err, file.file.Close())
		}
		switch {
		case err == nil || errors.Is(err, fs.ErrPermission):
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
			return fmt.Errorf("read an object: %w", err) // Which says nothing about it.
		}
		return r.remove(path, &r.done.Objects)
	})
}

// indexes makes the index of a pack anew that has none which can be read.
func (r *recovery) indexes() error {
	packs, err := listSuffix(filepath.Join(r.dir, "objects", "pack"), ".pack")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list the packs: %w", err)
	}
	for _, pack := range packs {
		if !strings.HasPrefix(filepath.Base(pack), "pack-") {
			continue
		}
		index := strings.TrimSuffix(pack, ".pack") + ".idx"
		if indexReads(index) {
			continue
		}
		if err := reindex(pack, index); err != nil {
			return fmt.Errorf("make the index of %s: %w", filepath.Base(pack), err)
		}
		r.done.Indexes = append(r.done.Indexes, filepath.Base(index))
	}
	return nil
}

// indexReads tells whether a pack's index has the length that it says; one that is not
// there is right as well, since a crash leaves packs that were never in use.
func indexReads(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return true
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return true
	}
	const ids = 8 + 256*4
	var head [ids]byte
	if _, err := file.ReadAt(head[:], 0); err != nil || string(head[:8]) != indexMagic {
		return false
	}
	// Each object has an id, a checksum and an offset, or two in a large pack.
	count := int64(binary.BigEndian.Uint32(head[ids-4:]))
	least := ids + count*(object.IDSize+8) + 2*object.IDSize
	return info.Size() >= least && info.Size() <= least+count*8
}

// reindex makes the index of a pack, in place of one that cannot be read.
func reindex(pack, index string) (err error) {
	dir := filepath.Dir(pack)
	work, err := os.MkdirTemp(dir, temporary)
	if err != nil {
		return fmt.Errorf("make a directory: %w", errortext.WithoutPath(err))
	}
	defer func() { err = errors.Join(err, removeDir(work)) }()
	from, err := os.Open(pack)
	if err != nil {
		return fmt.Errorf("open the pack: %w", err)
	}
	defer from.Close()
	indexer, err := git.NewIndexer(work, nil, nil)
	if err != nil {
		return fmt.Errorf("open an indexer: %w", err)
	}
	defer indexer.Free()
	if _, err := io.CopyBuffer(writerOnly{indexer}, from, make([]byte, 1<<20)); err != nil {
		return fmt.Errorf("read the pack: %w", err)
	}
	id, err := indexer.Commit()
	if err != nil {
		return fmt.Errorf("index the pack: %w", err)
	}
	made := filepath.Join(work, "pack-"+hex.EncodeToString(id[:])+".idx")
	if err := os.Rename(made, index); err != nil {
		return fmt.Errorf("put the index in place: %w", errortext.WithoutPath(err))
	}
	return durable.SyncDir(dir)
}

// writerOnly hides what else the indexer can do, so that the given buffer is used.
type writerOnly struct{ io.Writer }

// removeDir removes a directory of files.
func removeDir(dir string) error {
	files, err := os.ReadDir(dir)
	for _, file := range files {
		err = errors.Join(err, os.Remove(filepath.Join(dir, file.Name())))
	}
	return errors.Join(err, os.Remove(dir))
}

// walk calls with each regular file below a directory of the repository.
func (r *recovery) walk(sub string, call func(path string) error) error {
	return filepath.WalkDir(filepath.Join(r.dir, sub), func(path string, file fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("look through the repository: %w", err)
		}
		if !file.Type().IsRegular() {
			return nil
		}
		return call(path)
	})
}

// remove removes a file, durably, and notes it.
func (r *recovery) remove(path string, done *[]string) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove what is left: %w", err)
	}
	name, err := filepath.Rel(r.dir, path)
	if err != nil {
		return fmt.Errorf("name what is left: %w", err)
	}
	*done = append(*done, name)
	return durable.SyncDir(filepath.Dir(path))
}
