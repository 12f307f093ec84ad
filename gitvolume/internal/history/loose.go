package history

import (
	"bufio"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// loose is an object that is a file of its own, open at its content. Such files are
// read here and not by libgit2, which never returns from one that was cut off.
type loose struct {
	kind git.ObjectType
	size int64
	deflated
}

// loosePath is where an object is if it is a file of its own.
func (r *Repository) loosePath(id object.ID) string {
	name := id.String()
	return filepath.Join(r.dir, "objects", name[:2], name[2:])
}

// openLoose opens an object that is a file of its own, or gives nil if it is none.
func (r *Repository) openLoose(id object.ID) (*loose, error) {
	file, err := os.Open(r.loosePath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", id, err)
	}
	found := &loose{}
	inflate, err := zlib.NewReader(bufio.NewReader(file))
	if err == nil {
		found.deflated = deflated{inflate, file}
		err = found.header()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w: %w", id, ErrDamaged, err), file.Close())
	}
	return found, nil
}

// header reads the object's kind and size, which stand before its content.
func (l *loose) header() error {
	var head []byte
	for one := make([]byte, 1); ; head = append(head, one[0]) {
		if _, err := io.ReadFull(l, one); err != nil {
			return fmt.Errorf("its header is cut off: %w", err)
		}
		if one[0] == 0 {
			break
		}
		if len(head) > 32 {
			return errors.New("its header has no end")
		}
	}
	kind, size, _ := strings.Cut(string(head), " ")
	var err error
	if l.size, err = strconv.ParseInt(size, 10, 64); err != nil || l.size < 0 {
		return fmt.Errorf("its header is %q", head)
	}
	for _, known := range []git.ObjectType{git.ObjectCommit, git.ObjectTree, git.ObjectBlob, git.ObjectTag} {
		if kind == kindName(known) {
			l.kind = known
			return nil
		}
	}
	return fmt.Errorf("its header is %q", head)
}

// content reads the whole object, which has to be the one of the id.
func (l *loose) content(id object.ID, limit uint64) ([]byte, error) {
	if uint64(l.size) > limit {
		return nil, fmt.Errorf("read %s of %d bytes, the limit is %d: %w", id, l.size, limit, ErrTooLarge)
	}
	// The size is a claim: memory grows with what is really there.
	content, err := io.ReadAll(io.LimitReader(l, l.size+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", id, ErrDamaged, err)
	}
	if int64(len(content)) != l.size {
		return nil, fmt.Errorf("read %s: it is cut off or goes on: %w", id, ErrDamaged)
	}
	return content, verify(id, l.kind, content)
}
