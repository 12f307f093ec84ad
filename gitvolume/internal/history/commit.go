package history

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// Bounds of commits and tags, which are read whole.
const (
	maxCommit = 64 << 20
	maxTags   = 100 // Tags of tags.
)

// Draft is a commit to be made.
type Draft struct {
	Tree              object.ID
	Parents           []object.ID
	Author, Committer Signature
	// author is the author's line of a commit that is made anew; empty is none. It is
	// kept byte for byte if a server's check takes it.
	author string
	// Message is taken as it is, without NUL, which git cuts at, and with a newline at
	// its end.
	Message string
}

// Commit adds a commit. Its tree and parents have to be there; the zero tree is the
// empty one.
func (r *Repository) Commit(draft Draft) (object.ID, error) {
	content, err := r.encode(draft)
	if err != nil {
		return object.ID{}, fmt.Errorf("make a commit: %w", err)
	}
	return r.put(git.ObjectCommit, content)
}

// encode is the commit as git writes it.
func (r *Repository) encode(draft Draft) ([]byte, error) {
	tree := draft.Tree
	if tree.IsZero() {
		empty, err := r.putTree(nil)
		if err != nil {
			return nil, err
		}
		tree = empty
	}
	err := r.want(tree, git.ObjectTree)
	if err != nil {
		return nil, err
	}
	author := draft.author
	if !isSignature(author) {
		if author, err = draft.Author.encode(); err != nil {
			return nil, fmt.Errorf("the author: %w", err)
		}
	}
	committer, err := draft.Committer.encode()
	if err != nil {
		return nil, fmt.Errorf("the committer: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, parent := range draft.Parents {
		if err := r.want(parent, git.ObjectCommit); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n", author, committer)
	message := strings.ReplaceAll(draft.Message, "\x00", "")
	b.WriteString(message)
	if !strings.HasSuffix(message, "\n") {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// Description is what a commit says, as far as it can be read.
type Description struct {
	Tree              object.ID
	Parents           []object.ID
	Author, Committer Signature
	Message           string

	author string // Its line as it is, if there is one.
}

// Describe reads a commit.
func (r *Repository) Describe(commit object.ID) (Description, error) {
	content, err := r.get(commit, git.ObjectCommit, maxCommit)
	if err != nil {
		return Description{}, err
	}
	d, err := parseCommit(content)
	if err != nil {
		return Description{}, fmt.Errorf("read the commit %s: %w", commit, err)
	}
	return d, nil
}

// CommitTree is the tree of a commit.
func (r *Repository) CommitTree(commit object.ID) (object.ID, error) {
	d, err := r.Describe(commit)
	return d.Tree, err
}

// Parents are the commits that a commit follows, the first first.
func (r *Repository) Parents(commit object.ID) ([]object.ID, error) {
	d, err := r.Describe(commit)
	return d.Parents, err
}

// CommitOf is the commit that an id is of, or that the tag of that id is of, however
// many tags there are between. Of anything else the error is ErrNotCommit.
func (r *Repository) CommitOf(id object.ID) (object.ID, error) {
	for range maxTags {
		kind, _, err := r.header(id)
		switch {
		case err != nil:
			return object.ID{}, err
		case kind == git.ObjectCommit:
			return id, nil
		case kind != git.ObjectTag:
			return object.ID{}, kindError(id, kind, git.ObjectCommit)
		}
		content, err := r.get(id, git.ObjectTag, maxCommit)
		if err != nil {
			return object.ID{}, err
		}
		target, _, err := header(content, "object")
		if err != nil {
			return object.ID{}, fmt.Errorf("read the tag %s: %w", id, err)
		}
		if id, err = object.Parse(target); err != nil {
			return object.ID{}, fmt.Errorf("read a tag: %w: %w", ErrMalformed, err)
		}
	}
	return object.ID{}, fmt.Errorf("follow more than %d tags of tags: %w", maxTags, ErrTooLarge)
}

// parseCommit reads a commit. Only its tree and parents have to be right; who wrote it
// and when is taken from strangers and may be anything.
func parseCommit(content []byte) (Description, error) {
	var d Description
	tree, rest, err := header(content, "tree")
	if err != nil {
		return d, err
	}
	if d.Tree, err = object.Parse(tree); err != nil {
		return d, fmt.Errorf("its tree: %w: %w", ErrMalformed, err)
	}
	for bytes.HasPrefix(rest, []byte("parent ")) {
		var text string
		if text, rest, err = header(rest, "parent"); err != nil {
			return d, err
		}
		parent, err := object.Parse(text)
		if err != nil {
			return d, fmt.Errorf("a parent: %w: %w", ErrMalformed, err)
		}
		d.Parents = append(d.Parents, parent)
	}
	for len(rest) > 0 {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		rest = after
		if len(line) == 0 {
			break
		}
		if text, ok := bytes.CutPrefix(line, []byte("author ")); ok {
			d.author = string(text)
			d.Author = parseSignature(d.author)
		} else if text, ok := bytes.CutPrefix(line, []byte("committer ")); ok {
			d.Committer = parseSignature(string(text))
		}
	}
	d.Message = string(rest)
	return d, nil
}

// header is the value of an object's header line that has to come next.
func header(content []byte, name string) (value string, rest []byte, err error) {
	line, rest, ended := bytes.Cut(content, []byte("\n"))
	text, ok := bytes.CutPrefix(line, []byte(name+" "))
	if !ok || !ended {
		return "", nil, fmt.Errorf("its line %q is not where it belongs: %w", name, ErrMalformed)
	}
	return string(text), rest, nil
}

// parseSignature reads who and when from a commit, as far as that goes.
func parseSignature(text string) Signature {
	var s Signature
	name, rest, ok := strings.Cut(text, "<")
	s.Name = strings.TrimSpace(name)
	if !ok {
		return s
	}
	end := strings.LastIndexByte(rest, '>')
	if end < 0 {
		return s
	}
	s.Email = rest[:end]
	fields := strings.Fields(rest[end+1:])
	if len(fields) == 0 {
		return s
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return s
	}
	zone := time.UTC
	if len(fields) > 1 {
		zone = parseZone(fields[1])
	}
	s.When = time.Unix(seconds, 0).In(zone)
	return s
}

// parseZone reads an offset such as +0130; one that is none is UTC.
func parseZone(text string) *time.Location {
	n, err := strconv.Atoi(text)
	if err != nil || len(text) != 5 || n == 0 {
		return time.UTC
	}
	return time.FixedZone("", (n/100*60+n%100)*60)
}
