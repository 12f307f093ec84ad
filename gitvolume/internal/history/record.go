package history

import (
	"errors"
	"fmt"
	"strings"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// MetadataRef is the ref whose tip holds the metadata records of all branches.
const MetadataRef = "refs/git-csi/metadata"

// recordPrefix is how every name of a record begins.
const recordPrefix = "refs%2F"

// ErrRecord says that what the metadata ref names holds no record that can be used: it
// is no commit, or one of something else, or the branch's record is broken. The volume
// goes on without, and its next record is made from none, over what is there.
var ErrRecord = errors.New("the metadata ref holds no usable record")

// Record is a branch's record in a commit of the metadata ref; an empty one if it has
// none, or the tip is zero. The branch is a full name, as refs/heads/main. The error is
// ErrRecord for what has to be made anew, and metadata.ErrVersion for what must not.
func (r *Repository) Record(tip object.ID, branch string) (metadata.Record, error) {
	record, err := r.record(tip, branch)
	if err != nil {
		return metadata.Record{}, fmt.Errorf("read the metadata record of %q in %s: %w", branch, tip, err)
	}
	return record, nil
}

func (r *Repository) record(tip object.ID, branch string) (metadata.Record, error) {
	records, err := r.records(tip)
	if err != nil {
		return metadata.Record{}, err
	}
	name, err := recordName(branch)
	if err != nil {
		return metadata.Record{}, err
	}
	blob, found := records[name]
	if !found {
		return metadata.Record{}, nil
	}
	content, err := r.get(blob, git.ObjectBlob, metadata.MaxSize)
	if err != nil {
		return metadata.Record{}, unusable(err)
	}
	record, err := metadata.Parse(content)
	if err != nil {
		if errors.Is(err, metadata.ErrVersion) {
			return metadata.Record{}, err
		}
		return metadata.Record{}, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	for path, entry := range record.All() {
		// An empty directory is the one thing that a record makes.
		if entry.Kind == metadata.Empty {
			if err := CheckPath(path); err != nil {
				return metadata.Record{}, fmt.Errorf("an empty directory: %w: %w", ErrRecord, err)
			}
		}
	}
	return record, nil
}

// Recording is a branch's record on its way into a commit of the metadata ref.
type Recording struct {
	// Keep is the commit whose records of other branches stay; zero for none, which
	// leaves out what cannot be used.
	Keep object.ID
	// Parent is the commit that the new one follows, mostly Keep; zero for none. It need
	// hold no records: a ref that was moved to something else is gone on with.
	Parent object.ID
	Branch string
	Record metadata.Record
	// Committer is who records, and when.
	Committer Signature
}

// CommitRecord adds a commit with the record and those of other branches, and gives its
// id: that of the parent if it has just these already, be it zero. No ref moves. An
// empty record is none. The error is ErrRecord if there is nothing usable in Keep.
func (r *Repository) CommitRecord(recording Recording) (object.ID, error) {
	commit, err := r.commitRecord(recording)
	if err != nil {
		return object.ID{}, fmt.Errorf("commit the metadata record of %q: %w", recording.Branch, err)
	}
	return commit, nil
}

func (r *Repository) commitRecord(recording Recording) (object.ID, error) {
	if _, err := r.records(recording.Keep); err != nil {
		return object.ID{}, err
	}
	var kept, before object.ID
	var err error
	if !recording.Keep.IsZero() {
		if kept, err = r.treeOf(recording.Keep); err != nil {
			return object.ID{}, err
		}
	}
	change := Change{}
	if change.Path, err = recordName(recording.Branch); err != nil {
		return object.ID{}, err
	}
	if recording.Record.Len() > 0 {
		text := recording.Record.Format()
		if len(text) > metadata.MaxSize {
			return object.ID{}, fmt.Errorf("the record has %d bytes: %w", len(text), ErrTooLarge)
		}
		change.Mode = object.Regular
		if change.Blob, err = r.Blob(text); err != nil {
			return object.ID{}, err
		}
	}
	tree, err := r.Edit(kept, []Change{change})
	if err != nil {
		return object.ID{}, err
	}
	var parents []object.ID
	if !recording.Parent.IsZero() {
		parents = []object.ID{recording.Parent}
		if before, err = r.treeOf(recording.Parent); err != nil {
			return object.ID{}, err
		}
	}
	if tree == before {
		return recording.Parent, nil
	}
	return r.Commit(Draft{
		Tree: tree, Parents: parents, Author: recording.Committer, Committer: recording.Committer,
		Message: "Record the metadata of " + recording.Branch,
	})
}

// records are the blobs of a commit of the metadata ref by their names.
func (r *Repository) records(tip object.ID) (map[string]object.ID, error) {
	if tip.IsZero() {
		return nil, nil
	}
	tree, err := r.CommitTree(tip)
	if err != nil {
		return nil, unusable(err)
	}
	entries, err := r.Entries(tree)
	if err != nil {
		return nil, unusable(err)
	}
	blobs := make(map[string]object.ID, len(entries))
	for _, entry := range entries {
		if !entry.Mode.IsFile() || !strings.HasPrefix(entry.Name, recordPrefix) {
			return nil, fmt.Errorf("it holds %.100q, which is no record: %w", entry.Name, ErrRecord)
		}
		if _, twice := blobs[entry.Name]; twice {
			// No tree can be made of it that servers which check take.
			return nil, fmt.Errorf("it holds %.100q twice: %w", entry.Name, ErrRecord)
		}
		blobs[entry.Name] = entry.ID
	}
	return blobs, nil
}

// unusable is the error of an object that a remote's metadata ref leads to. Whatever is
// wrong with it but that it is not here yet, a new record makes good.
func unusable(err error) error {
	for _, bad := range []error{ErrNotCommit, ErrDamaged, ErrMalformed, ErrTooLarge} {
		if errors.Is(err, bad) {
			return fmt.Errorf("%w: %w", ErrRecord, err)
		}
	}
	return err
}

// recordName is the name of a branch's record in the tree.
func recordName(branch string) (string, error) {
	if err := CheckRef(branch); err != nil {
		return "", err
	}
	return object.EscapeRef(branch), nil
}
