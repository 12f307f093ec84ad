package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

// Request is what to fetch, and into which repository.
type Request struct {
	// Dir is a bare repository of the store.
	Dir    string
	Remote Remote
	// Refs maps what is wanted of the remote, a ref's full name or a commit's id, to the
	// full name of the ref of Dir that is to be the same. Whatever that was is
	// overwritten; no other ref is touched. The caller sees to it that no local name is a
	// directory of another's.
	Refs map[string]string
	// Depth is the number of commits of each ref; 0 is all.
	Depth int
	// Progress, if not nil, is called from another goroutine.
	Progress func(Progress)
	// Urgent is closed when somebody waits for the fetch; nil: nobody ever does.
	Urgent <-chan struct{}
}

// Fetched is what a ref that was asked for is now.
type Fetched struct {
	// Gone tells that the remote has no such ref. The local one is as it was.
	Gone bool
	// Tip is the object that both refs name.
	Tip object.ID
	// Commit is the commit that Tip is or is a tag of; zero when it is none.
	Commit object.ID
}

// Fetch brings the refs into the repository, by the names of Request.Refs. A remote
// without a ref that is asked for is no error. What an earlier run left half done in the
// repository is removed when this one fails.
func (c *Command) Fetch(ctx context.Context, request Request) (map[string]Fetched, error) {
	unlock, err := c.lockBeforeGC(ctx, request.Dir, request.Urgent)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	defer unlock()
	fetched := map[string]Fetched{}
	// git fetches nothing at all when one ref is missing. Looking for it only then saves
	// the usual fetch a second connection.
	if request.missesSome() {
		err = c.fetchExisting(ctx, request, fetched, nil)
	} else if err = c.fetch(ctx, request, request.Refs); err != nil && ctx.Err() == nil {
		err = c.fetchExisting(ctx, request, fetched, err)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", errors.Join(err, removeUnfinished(request.Dir, slices.Collect(maps.Values(request.Refs)))))
	}
	if err := c.tips(ctx, request, fetched); err != nil {
		return nil, fmt.Errorf("read the fetched refs: %w", err)
	}
	return fetched, nil
}

// missesSome tells whether one of several refs was never brought here, so that the remote
// may well not have it: a side branch mostly is none.
func (r Request) missesSome() bool {
	if len(r.Refs) < 2 {
		return false
	}
	missing := false
	for from, to := range r.Refs {
		if !strings.HasPrefix(from, "refs/") {
			return false // That a commit is there, no list tells.
		}
		_, err := os.Lstat(filepath.Join(r.Dir, to))
		missing = missing || errors.Is(err, fs.ErrNotExist)
	}
	return missing
}

// fetchExisting marks in fetched what the remote does not have and fetches the rest. When
// the remote has all of it, the first failure stands, unless there was none, or it may be
// that somebody made one of the refs between the two looks.
func (c *Command) fetchExisting(ctx context.Context, request Request, fetched map[string]Fetched, first error) error {
	if errors.Is(first, errShallow) || IsRemote(first) && !errors.Is(first, ErrNoRepository) {
		return first
	}
	refs, err := c.List(ctx, request.Remote, slices.Collect(maps.Keys(request.Refs))...)
	if err != nil {
		return err // It says more than the first: whether there is a repository at all.
	}
	exist, commits := map[string]string{}, map[string]string{}
	for from, to := range request.Refs {
		switch {
		case !strings.HasPrefix(from, "refs/"):
			commits[from] = to
		case refs.Tip(from).IsZero():
			fetched[from] = Fetched{Gone: true}
		default:
			exist[from] = to
		}
	}
	if len(exist) == len(request.Refs) && first != nil {
		return c.fetchAgain(ctx, request, first)
	}
	if len(exist) > 0 {
		if err := c.fetch(ctx, request, exist); err != nil {
			return err
		}
	}
	return c.fetchCommits(ctx, request, commits)
}

// mostOfALook is more than a remote sends of refs that are asked for by name, and less than
// what is worth not to be brought twice.
const mostOfALook = 1 << 20

// fetchAgain fetches what the remote is now seen to have, if the first failure was before
// anything of it was brought.
func (c *Command) fetchAgain(ctx context.Context, request Request, first error) error {
	var failure *Failure
	if !errors.As(first, &failure) {
		return first
	}
	if errors.Is(failure.Kind, ErrNoRepository) {
		failure.Kind = ErrFailed // It is there, as was seen.
	}
	if !errors.Is(failure.Kind, ErrFailed) || failure.received > mostOfALook {
		return first
	}
	return c.fetch(ctx, request, request.Refs)
}

// fetchCommits brings commits from a remote that gives none by its id alone: with all
// branches and tags, of which no ref is kept.
func (c *Command) fetchCommits(ctx context.Context, request Request, commits map[string]string) error {
	if len(commits) == 0 {
		return nil
	}
	if err := c.fetch(ctx, request, commits); err == nil || errors.Is(err, ErrNoRoom) {
		return err
	}
	names, err := c.names(ctx, request.Remote)
	if err != nil {
		return err
	}
	whole := request
	whole.Depth = 0
	if err := c.fetchSpecs(ctx, whole, names); err != nil {
		return err
	}
	for from, to := range commits {
		commit, err := object.Parse(from)
		if err != nil {
			return err
		}
		if !c.has(ctx, request.Dir, commit) {
			return &MissingRef{Name: from}
		}
		if _, err := c.do(ctx, run{args: []string{"update-ref", to, from}, dir: request.Dir}); err != nil {
			return err
		}
	}
	return nil
}

// fetch is one run, for these refs.
func (c *Command) fetch(ctx context.Context, request Request, refs map[string]string) error {
	var specs strings.Builder
	for _, from := range slices.Sorted(maps.Keys(refs)) {
		spec := "+" + from + ":" + refs[from]
		if strings.ContainsAny(spec[1:], "\n*^?[\\~ ") || !strings.HasPrefix(refs[from], "refs/") {
			return fmt.Errorf("%q is nothing to fetch", spec)
		}
		fmt.Fprintln(&specs, spec)
	}
	return c.fetchSpecs(ctx, request, specs.String())
}

func (c *Command) fetchSpecs(ctx context.Context, request Request, specs string) error {
	args := []string{
		"fetch", "--stdin", "--progress", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
		"--no-auto-maintenance", "--no-prune", "--no-show-forced-updates",
	}
	if request.Depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(request.Depth))
	}
	e, err := c.do(ctx, run{
		args:     append(args, "--", request.Remote.URL.String()),
		dir:      request.Dir,
		remote:   &request.Remote,
		stdin:    strings.NewReader(specs),
		progress: request.Progress,
		receives: true,
	})
	if err == nil && e.shallow {
		// What is here would pass for what the remote has.
		err = fmt.Errorf("run git fetch: %w", &Failure{Kind: ErrFailed, Cause: errShallow, Words: e.words, received: e.facts.received})
	}
	return err
}

// errShallow says that the remote itself has not all of its history.
var errShallow = errors.New("the remote is a shallow clone, which gives its refs only to a volume with a depth: run git fetch --unshallow there")

// tips reads what the local refs are now, for those that are not gone.
func (c *Command) tips(ctx context.Context, request Request, fetched map[string]Fetched) error {
	var asked []string
	var names strings.Builder
	for from, to := range request.Refs {
		if !fetched[from].Gone {
			asked = append(asked, from)
			fmt.Fprintf(&names, "%s\n%s^{commit}\n", to, to)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	var answers []object.ID
	lines := &lineReader{longest: longestRef, line: func(line []byte) error {
		if bytes.HasSuffix(line, []byte(" missing")) {
			answers = append(answers, object.ID{})
			return nil
		}
		id, err := object.Parse(string(line))
		answers = append(answers, id)
		return err
	}}
	_, err := c.do(ctx, run{
		args:   []string{"cat-file", "--batch-check=%(objectname)"},
		dir:    request.Dir,
		stdin:  strings.NewReader(names.String()),
		stdout: lines,
	})
	if err != nil {
		return err
	}
	if len(answers) != 2*len(asked) {
		return fmt.Errorf("git tells of %d objects, not of %d", len(answers), 2*len(asked))
	}
	for i, from := range asked {
		fetched[from] = Fetched{Tip: answers[2*i], Commit: answers[2*i+1]}
	}
	return nil
}
