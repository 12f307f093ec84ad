package history

import (
	"errors"
	"fmt"
	"os"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// Repository is a bare repository of the store. It is owned by one goroutine. Other
// handles, of this process or not, and git itself may work on the same directory.
type Repository struct {
	dir     string
	git     *git.Repository
	odb     *git.Odb
	chains  *chains
	pending *pending
	flushed int // Packs written since the repository was opened.
}

// Open opens the bare repository in the directory, whose owner has to be the process's
// own user. The caller closes it. One with other ids than those of SHA-1 is
// ErrObjectFormat. Of one that is shallow all can be read that is there; what depends on
// the commits that are not is ErrShallow.
func Open(dir string) (*Repository, error) {
	if err := settle(); err != nil {
		return nil, err
	}
	if err := checkFormat(dir); err != nil {
		return nil, fmt.Errorf("open the repository: %w", err)
	}
	r := &Repository{dir: dir, pending: newPending()}
	// libgit2 then knows every pack that is known here, so that it takes from a pack
	// what is in one.
	r.chains = &chains{dir: r.packDir(), changed: func() error { return r.refresh() }}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// open opens what libgit2 holds of the repository.
func (r *Repository) open() error {
	// Neither a directory above nor the environment says which repository it is.
	repository, err := git.OpenRepositoryExtended(r.dir, git.RepositoryOpenNoSearch|git.RepositoryOpenBare, "")
	if err != nil {
		return fmt.Errorf("open the repository: %w", err)
	}
	odb, err := repository.Odb()
	if err != nil {
		repository.Free()
		return fmt.Errorf("open the object database: %w", err)
	}
	r.git, r.odb, r.flushed = repository, odb, 0
	return nil
}

// Dir is the directory that it was opened in.
func (r *Repository) Dir() string { return r.dir }

// Close frees the repository. Pending objects are lost.
func (r *Repository) Close() {
	if r.git == nil {
		return
	}
	r.chains.close()
	r.odb.Free()
	r.git.Free()
	r.git = nil
	r.pending = newPending()
}

// Reopen opens the repository anew, which lets go of packs that were deleted and of the
// descriptors of all that were read: only then it is what is on the disk. Pending objects
// stay.
func (r *Repository) Reopen() error { return r.reopen() }

// reopen is Reopen. Reading an object and Flush may come to this, so nothing of libgit2's
// may be held across them.
func (r *Repository) reopen() error {
	fresh := &Repository{dir: r.dir}
	if err := fresh.open(); err != nil {
		return err
	}
	r.chains.close()
	r.odb.Free()
	r.git.Free()
	r.git, r.odb, r.flushed = fresh.git, fresh.odb, 0
	return nil
}

// Packs is how many packs the repository has: each Flush and each large blob adds one,
// and all that is done costs more with their number. Above some fifty of them git should
// repack, in a way that keeps what no ref leads to yet: by gc, or by repack with
// --geometric, never with -ad.
func (r *Repository) Packs() (int, error) {
	indexes, err := r.packIndexes()
	return len(indexes), err
}

// put adds an object and gives its id. One that is in the repository already is written
// once more: it may be on its way out, since a gc that looked before any ref led to it
// deletes the pack it is in. Only a pack that comes after that look is safe from it. The
// next gc drops what is there twice.
func (r *Repository) put(kind git.ObjectType, content []byte) (object.ID, error) {
	// libgit2's own SHA-1 finds the known ways to make two files with one id, which
	// git refuses as well.
	oid, err := r.odb.Hash(content, kind)
	if err != nil {
		return object.ID{}, fmt.Errorf("hash a %s: %w: %w", kindName(kind), ErrContent, err)
	}
	id := object.ID(*oid)
	there, err := r.makeRoom(id, len(content))
	if err != nil || there {
		return id, err
	}
	return id, r.pending.add(id, kind, content)
}

// makeRoom makes room for an object that is to be pending, and tells whether it is.
func (r *Repository) makeRoom(id object.ID, size int) (there bool, err error) {
	if _, ok := r.pending.objects[id]; ok {
		return true, nil
	}
	if len(r.pending.pack)+size > flushAt {
		return false, r.Flush()
	}
	return false, nil
}

// get reads an object of a kind, of at most limit bytes. The bytes are the caller's.
func (r *Repository) get(id object.ID, kind git.ObjectType, limit uint64) ([]byte, error) {
	content, got, err := r.getAny(id, limit)
	if err == nil && got != kind {
		return nil, kindError(id, got, kind)
	}
	return content, err
}

// getAny reads an object of whatever kind.
func (r *Repository) getAny(id object.ID, limit uint64) ([]byte, git.ObjectType, error) {
	if e, ok := r.pending.objects[id]; ok && e.deltas == 0 {
		content, err := r.pending.read(e)
		return content, e.kind, err
	} else if ok {
		// libgit2 reads deltas.
		if err := r.Flush(); err != nil {
			return nil, e.kind, err
		}
	}
	content, kind, err := r.getStored(id, limit)
	if err == nil || errors.Is(err, ErrMissing) || errors.Is(err, ErrTooLarge) {
		return content, kind, err
	}
	// A repack by another process may have deleted the pack that libgit2 meant to
	// read it from.
	if reopened := r.reopen(); reopened != nil {
		return nil, kind, errors.Join(err, reopened)
	}
	return r.getStored(id, limit)
}

// getStored reads an object that is not pending.
func (r *Repository) getStored(id object.ID, limit uint64) ([]byte, git.ObjectType, error) {
	takes, packed, err := r.chains.takes(id, limit)
	if err != nil {
		return nil, git.ObjectInvalid, err
	}
	if !packed {
		if file, err := r.openLoose(id); file != nil {
			content, err := file.content(id, limit)
			return content, file.kind, errors.Join(err, file.file.Close())
		} else if err != nil {
			return nil, git.ObjectInvalid, err
		}
	}
	oid := git.NewOidFromBytes(id[:])
	if !packed || takes > limit {
		size, kind, err := r.odb.ReadHeader(oid)
		if err != nil {
			return nil, kind, lookup(id, err)
		}
		if size > limit {
			return nil, kind, fmt.Errorf("read %s of %d bytes, the limit is %d: %w", id, size, limit, ErrTooLarge)
		}
	}
	stored, err := r.odb.Read(oid)
	if err != nil {
		return nil, git.ObjectInvalid, lookup(id, err)
	}
	content := make([]byte, stored.Len())
	copy(content, stored.Data())
	kind := stored.Type()
	stored.Free()
	return content, kind, verify(id, kind, content)
}

// header is which kind of object the id is of, and its size.
func (r *Repository) header(id object.ID) (git.ObjectType, int64, error) {
	if e, ok := r.pending.objects[id]; ok {
		return e.kind, int64(e.size), nil
	}
	if file, err := r.openLoose(id); file != nil {
		return file.kind, file.size, file.file.Close()
	} else if err != nil {
		return git.ObjectInvalid, 0, err
	}
	return r.packedHeader(id)
}

// packedHeader is header for an object that is no file of its own.
func (r *Repository) packedHeader(id object.ID) (git.ObjectType, int64, error) {
	size, kind, err := r.odb.ReadHeader(git.NewOidFromBytes(id[:]))
	if err != nil {
		return kind, 0, lookup(id, err)
	}
	return kind, int64(size), nil
}

// want checks that an object of the kind is there.
func (r *Repository) want(id object.ID, kind git.ObjectType) error {
	got, _, err := r.header(id)
	if err == nil && got != kind {
		_, err = r.get(id, kind, maxContent) // What it says to be may be damage.
	}
	return err
}

// exists tells whether a file or directory is there; any trouble counts as yes, so
// that nothing is made anew over it.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}
