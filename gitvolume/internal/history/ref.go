package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	git "github.com/libgit2/git2go/v34"
	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
	"liken.sh/gitvolume/internal/object"
)

var (
	// ErrNoRef says that there is no ref of that name.
	ErrNoRef = errors.New("no such ref")
	// ErrRefMoved says that a ref is not what it was expected to be; nothing was changed.
	ErrRefMoved = errors.New("the ref is not what it was")
	// ErrRefCollision says that a ref cannot be beside another: refs/heads/a excludes
	// refs/heads/a/b.
	ErrRefCollision = errors.New("another ref is in the way of that name")
	// ErrRefLocked says that a lock file of the ref, or of all packed refs, stayed. It
	// may be that of a killed process: Recover removes it.
	ErrRefLocked = errors.New("the ref stays locked")
	// ErrRefDamaged says that a ref's file holds no id, as after a power cut.
	ErrRefDamaged = errors.New("the ref cannot be read")
)

// Refs are locked for about a millisecond by whoever writes them.
const (
	lockTries = 20
	lockPause = 50 * time.Millisecond
)

// The driver has nobody pack refs: libgit2 looks at a ref's file and at packed-refs one
// after the other, so a ref that git packs meanwhile can seem to be gone, or be deleted
// in one of the places alone. The configuration keeps a gc from it; someone who does it
// by hand is met by looking again.

// NamedRef is a ref and what it names.
type NamedRef struct {
	Name string
	ID   object.ID
}

// Ref is the id that a ref names; a symbolic one, such as HEAD, is followed.
func (r *Repository) Ref(name string) (object.ID, error) {
	ref, err := r.lookupRef(name)
	if err != nil {
		return object.ID{}, fmt.Errorf("read the ref %q: %w", name, err)
	}
	defer ref.Free()
	resolved, err := ref.Resolve()
	if err != nil {
		return object.ID{}, fmt.Errorf("follow the ref %q: %w", name, refError(err))
	}
	defer resolved.Free()
	return object.ID(*resolved.Target()), nil
}

// SetRef makes the ref name an object, if it names from now; a zero from is a ref that
// is not there yet. Else the error is ErrRefMoved. Pending objects are flushed before,
// and the ref is durable when SetRef returns.
func (r *Repository) SetRef(name string, to, from object.ID) error {
	err := r.setRef(name, to, from)
	if err != nil {
		return fmt.Errorf("set the ref %q to %s: %w", name, to, err)
	}
	return nil
}

func (r *Repository) setRef(name string, to, from object.ID) error {
	if err := CheckRef(name); err != nil {
		return err
	}
	if err := r.Flush(); err != nil {
		return err
	}
	if _, _, err := r.header(to); err != nil {
		return err
	}
	// Directories on the way are made here because libgit2 does not sync them.
	if err := r.makeRefDirs(name); err != nil {
		return err
	}
	oid := git.NewOidFromBytes(to[:])
	err := r.unlocked(func() error {
		if from.IsZero() {
			return r.createRef(name, oid)
		}
		ref, err := r.expect(name, from)
		if err != nil {
			return err
		}
		defer ref.Free()
		moved, err := ref.SetTarget(oid, "")
		if err != nil {
			return refError(err)
		}
		moved.Free()
		return nil
	})
	if err != nil && !errors.Is(err, ErrRefMoved) && r.isPacked(name, to) {
		return r.syncPacked()
	}
	return err
}

// isPacked tells whether the ref names the id in the file of all packed refs. There a git
// that packs them may have put it before libgit2 had synced the directory, which then is
// gone, and says that it could not set the ref.
func (r *Repository) isPacked(name string, id object.ID) bool {
	if _, err := os.Lstat(filepath.Join(r.dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	is, err := r.Ref(name)
	return err == nil && is == id
}

// syncPacked makes the file of packed refs durable. A git does so only if it is told to.
func (r *Repository) syncPacked() error {
	packed, err := os.Open(filepath.Join(r.dir, packedRefs))
	if err != nil {
		return fmt.Errorf("open the packed refs: %w", err)
	}
	defer packed.Close()
	if err := packed.Sync(); err != nil {
		return fmt.Errorf("sync the packed refs: %w", err)
	}
	return durable.SyncDir(r.dir)
}

// createRef makes a ref that is not there. libgit2 looks whether it is before it locks
// it, so that two could both make it: handles of the store exclude each other here.
func (r *Repository) createRef(name string, to *git.Oid) error {
	dir, err := os.Open(filepath.Join(r.dir, "refs"))
	if err != nil {
		return fmt.Errorf("open the refs: %w", err)
	}
	defer dir.Close() // Which unlocks it.
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock the refs: %w", err)
	}
	made, err := r.git.References.Create(name, to, false, "")
	if err != nil {
		return r.createError(name, err)
	}
	made.Free()
	return nil
}

// Refs are the refs whose names start with the prefix. Refs that cannot be read and
// symbolic ones are left out.
func (r *Repository) Refs(prefix string) ([]NamedRef, error) {
	iterator, err := r.git.NewReferenceIterator()
	if err != nil {
		return nil, fmt.Errorf("list the refs: %w", err)
	}
	defer iterator.Free()
	var refs []NamedRef
	for {
		ref, err := iterator.Next()
		if git.IsErrorCode(err, git.ErrorCodeIterOver) {
			return refs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the refs: %w", err)
		}
		if target := ref.Target(); target != nil && strings.HasPrefix(ref.Name(), prefix) {
			refs = append(refs, NamedRef{Name: ref.Name(), ID: object.ID(*target)})
		}
		ref.Free()
	}
}

// lookupRef reads a ref. HEAD is the one name that need not start with refs/.
func (r *Repository) lookupRef(name string) (*git.Reference, error) {
	if name != "HEAD" {
		if err := CheckRef(name); err != nil {
			return nil, err
		}
	}
	ref, err := r.git.References.Lookup(name)
	if git.IsErrorCode(err, git.ErrorCodeNotFound) {
		// It may have been packed between the two looks that this is.
		ref, err = r.git.References.Lookup(name)
	}
	if err != nil {
		return nil, refError(err)
	}
	return ref, nil
}

// expect reads a ref that has to name the id.
func (r *Repository) expect(name string, from object.ID) (*git.Reference, error) {
	ref, err := r.lookupRef(name)
	if err != nil {
		if errors.Is(err, ErrNoRef) {
			err = fmt.Errorf("%w: %w", ErrRefMoved, err)
		}
		return nil, err
	}
	if target := ref.Target(); target == nil || object.ID(*target) != from {
		ref.Free()
		return nil, fmt.Errorf("it does not name %s: %w", from, ErrRefMoved)
	}
	return ref, nil
}

// unlocked does it, again while another process has the ref locked.
func (r *Repository) unlocked(do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if !errors.Is(err, ErrRefLocked) || try == lockTries {
			return err
		}
		time.Sleep(lockPause)
	}
}

// createError tells a ref that is there from one that is in the way.
func (r *Repository) createError(name string, err error) error {
	if failed := refError(err); !errors.Is(failed, ErrRefMoved) && !git.IsErrorClass(err, git.ErrorClassReference) {
		return failed
	}
	if ref, err := r.git.References.Lookup(name); err == nil {
		ref.Free()
		return fmt.Errorf("it is there already: %w", ErrRefMoved)
	}
	return fmt.Errorf("%w: %w", ErrRefCollision, err)
}

// refError is an error about a ref as the caller decides on it.
func refError(err error) error {
	switch {
	case err == nil:
		return nil
	case git.IsErrorCode(err, git.ErrorCodeNotFound):
		return ErrNoRef
	case git.IsErrorCode(err, git.ErrorCodeModified), git.IsErrorCode(err, git.ErrorCodeExists):
		return fmt.Errorf("%w: %w", ErrRefMoved, err)
	case git.IsErrorCode(err, git.ErrorCodeLocked):
		return fmt.Errorf("%w: %w", ErrRefLocked, err)
	case git.IsErrorClass(err, git.ErrorClassReference):
		return fmt.Errorf("%w: %w", ErrRefDamaged, err)
	}
	return fmt.Errorf("libgit2: %w", err)
}

// makeRefDirs makes the directories of a ref durable, unless one is a ref itself.
func (r *Repository) makeRefDirs(name string) error {
	dir := filepath.Dir(name)
	if info, err := os.Lstat(r.existingDir(dir)); err == nil && !info.IsDir() {
		return fmt.Errorf("%q is a ref: %w", dir, ErrRefCollision)
	}
	return makeDirs(r.dir, dir)
}

// existingDir is the nearest thing that is there at or above a name in the repository.
func (r *Repository) existingDir(name string) string {
	for ; name != "."; name = filepath.Dir(name) {
		if _, err := os.Lstat(filepath.Join(r.dir, name)); err == nil {
			break
		}
	}
	return filepath.Join(r.dir, name)
}
