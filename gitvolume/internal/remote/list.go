package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

const (
	// examples bounds the names that are kept for a message.
	examples = 20
	// longestRef is that of git's protocols, one packet.
	longestRef = 64 << 10
)

// errListing says that what git printed of a remote's refs is no list of refs.
var errListing = errors.New("no line of a list of refs")

// Refs is what a remote has, as far as it was asked for.
type Refs struct {
	// Head is the ref that HEAD stands for; empty if the remote does not say.
	Head string
	// Count is the number of all refs of the remote, HEAD aside.
	Count int
	// Branches and Tags are some of the short names there are.
	Branches, Tags []string

	keep func(name string) bool
	// redact takes secrets out of names that are shown.
	redact func(string) string
	tips   map[string]tip
}

// tip is where a ref is, and what a tag is a tag of.
type tip struct{ id, peeled object.ID }

// Ref is one ref of a remote, or a commit that was named by its id.
type Ref struct {
	// Name is the full name; empty for a commit.
	Name string
	// Tip is the object the ref names; for a tag that is an object of its own, that
	// object.
	Tip object.ID
	// Peeled is what a tag is a tag of, through any number of tags; else it is Tip.
	// Whether it is a commit, a fetch tells.
	Peeled object.ID
}

// List reads the remote's refs in one connection and keeps those that the names could
// mean.
func (c *Command) List(ctx context.Context, remote Remote, names ...string) (*Refs, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		for _, full := range candidates(name) {
			wanted[full] = true
		}
		if tag, found := namesake(name); found {
			wanted[tag] = true
		}
	}
	return c.list(ctx, remote, func(name string) bool { return wanted[name] })
}

func (c *Command) list(ctx context.Context, remote Remote, keep func(name string) bool) (*Refs, error) {
	refs := &Refs{keep: keep, redact: c.redactor(&remote), tips: map[string]tip{}}
	if err := c.lines(ctx, remote, refs.add, "--symref"); err != nil {
		return nil, err
	}
	return refs, nil
}

// lines has git list refs of the remote, and hands on each line of it.
func (c *Command) lines(ctx context.Context, remote Remote, take func(line []byte) error, options ...string) error {
	var failed error
	lines := &lineReader{longest: longestRef, line: func(line []byte) error {
		failed = take(line)
		return failed
	}}
	_, err := c.do(ctx, run{
		args:   append(append([]string{"ls-remote"}, options...), "--", remote.URL.String()),
		remote: &remote,
		stdout: lines,
	})
	if failed != nil {
		// That git was ended is only what came of it.
		return fmt.Errorf("list the remote's refs: %w", &Failure{Kind: ErrFailed, Cause: failed})
	}
	if err != nil {
		return fmt.Errorf("list the remote's refs: %w", err)
	}
	return nil
}

// candidates are the refs that a name can mean, in the order in which they are taken:
// none, if it is a whole id.
func candidates(name string) []string {
	if strings.HasPrefix(name, "refs/") {
		return []string{name}
	}
	if _, err := object.Parse(name); err == nil {
		return nil
	}
	return []string{"refs/heads/" + name, "refs/tags/" + name}
}

// namesake is the tag that is called as a branch with the full name is: of one that is
// missing, it is likely to be meant.
func namesake(name string) (tag string, found bool) {
	branch, found := strings.CutPrefix(name, "refs/heads/")
	return "refs/tags/" + branch, found
}

// add takes one line: an id and a name, or "ref: NAME" and HEAD.
func (r *Refs) add(line []byte) error {
	value, rawName, found := bytes.Cut(line, []byte("\t"))
	name := string(rawName)
	if !found {
		return fmt.Errorf("%q: %w", line, errListing)
	}
	if target, symbolic := bytes.CutPrefix(value, []byte("ref: ")); symbolic {
		if name == "HEAD" {
			r.Head = string(target)
		}
		return nil
	}
	id, err := object.Parse(string(value))
	if err != nil {
		return err
	}
	if name == "HEAD" {
		return nil
	}
	base, peeled := strings.CutSuffix(name, "^{}")
	if !peeled {
		r.count(name)
	}
	if !r.keep(base) {
		return nil
	}
	entry := r.tips[base]
	if entry.peeled = id; !peeled {
		entry.id = id
	}
	r.tips[base] = entry
	return nil
}

func (r *Refs) count(name string) {
	r.Count++
	if branch, found := strings.CutPrefix(name, "refs/heads/"); found && len(r.Branches) < examples {
		r.Branches = append(r.Branches, branch)
	}
	if tag, found := strings.CutPrefix(name, "refs/tags/"); found && len(r.Tags) < examples {
		r.Tags = append(r.Tags, tag)
	}
}

// Tip is where the ref with the full name is; zero when there is none. The name was
// given to List.
func (r *Refs) Tip(name string) object.ID { return r.tips[name].id }

// Resolve finds what a name of the user's stands for, which was given to List: a full
// name is itself, 40 lower-case hexadecimal digits are the commit with that id, whatever
// refs there are, and of others a branch goes before a tag. The error is a MissingRef.
func (r *Refs) Resolve(name string) (Ref, error) {
	if id, err := object.Parse(name); err == nil {
		return Ref{Tip: id, Peeled: id}, nil
	}
	for _, full := range candidates(name) {
		if entry, found := r.tips[full]; found {
			return Ref{Name: full, Tip: entry.id, Peeled: entry.peeled}, nil
		}
	}
	return Ref{}, r.missing(name)
}

// missing says of a name that is no ref what there is of the kind.
func (r *Refs) missing(name string) *MissingRef {
	missing := &MissingRef{Name: name, Empty: r.Count == 0}
	kinds := [][]string{r.Branches, r.Tags}
	if tag, isBranch := namesake(name); isBranch {
		kinds = [][]string{r.Branches}
		_, missing.IsTag = r.tips[tag]
	}
	for _, exist := range kinds {
		for _, short := range exist[:min(len(exist), examples/2)] {
			missing.Exist = append(missing.Exist, quote(r.redact(short)))
		}
	}
	return missing
}
