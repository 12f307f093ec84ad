package readonly

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/worktree"
)

// The names in a checkout's directory.
const (
	treeName = "tree"
	noteName = "note.json"
)

// label is that of files that any container may read. The runtime labels only what it
// mounts writable.
const label = "system_u:object_r:container_file_t:s0"

// checkout is a tree that volumes show.
type checkout struct {
	key        string
	repository store.Repository

	// Those are Followers.mu's.
	users map[*Attachment]bool
	// finish tells that a crash may have left a move half-way.
	finish bool

	// Those are of who has the key's lock.
	at      time.Time // When was looked what it shows.
	commit  object.ID // What it shows; zero: not known.
	skipped []report.Skip
}

// dir is what pods see of a checkout.
func (f *Followers) dir(key string) string {
	return filepath.Join(f.settings.Store.CheckoutDir(key), treeName)
}

// tree is the checkout on the disk.
func (f *Followers) tree(key string, source worktree.Source) *worktree.Checkout {
	note := filepath.Join(f.settings.Store.CheckoutDir(key), noteName)
	return &worktree.Checkout{Dir: f.dir(key), Note: note, Source: source, Label: label, Room: f.settings.Store.CheckFree}
}

// share has the attachment show the checkout of the key. The caller holds mu.
func (f *Followers) share(key string, repository store.Repository, a *Attachment) *checkout {
	c := f.checkouts[key]
	if c == nil {
		c = &checkout{key: key, repository: repository, users: map[*Attachment]bool{}}
		f.checkouts[key] = c
	}
	c.users[a] = true
	return c
}

// release ends what share began. The caller holds mu.
func (f *Followers) release(c *checkout, a *Attachment) {
	if delete(c.users, a); len(c.users) == 0 && f.checkouts[c.key] == c {
		delete(f.checkouts, c.key)
	}
}

// sight is where a ref was.
type sight struct {
	commit object.ID
	at     time.Time // Not before this.
}

// move has the checkout show what was seen, unless it shows what was seen later, or nobody
// needs it any more. It gives what is left out of the tree.
func (f *Followers) move(ctx context.Context, c *checkout, seen sight) ([]report.Skip, error) {
	unlock, err := f.trees.Lock(ctx, c.key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	f.mu.Lock()
	needed := len(c.users) > 0
	f.mu.Unlock()
	if !needed || c.at.After(seen.at) {
		return c.skipped, nil
	}
	if c.commit != seen.commit {
		if err := f.write(ctx, c, seen.commit); err != nil {
			return nil, err
		}
	}
	c.at, c.commit = seen.at, seen.commit
	return c.skipped, nil
}

// write makes the tree hold the commit. Both the commit that it holds and the one that it
// is to hold are kept by refs until that is done: what the next start goes on with.
func (f *Followers) write(ctx context.Context, c *checkout, commit object.ID) error {
	release, err := c.repository.Use(ctx)
	if err != nil {
		return err
	}
	defer release()
	repo, err := history.Open(c.repository.Dir())
	if err != nil {
		return fmt.Errorf("open the repository: %w", store.BlameForOpening(c.repository.Dir(), err))
	}
	defer repo.Close()
	tree, err := repo.CommitTree(commit)
	if err != nil {
		return err
	}
	if err := f.settings.Store.MakeCheckout(c.key); err != nil {
		return err
	}
	if err := setRef(repo, store.CheckoutRef(c.key, store.AnchorNext), commit); err != nil {
		return err
	}
	refused, err := f.tree(c.key, repo).Follow(ctx, commit, tree)
	if err != nil {
		return err
	}
	c.skip(repo, tree, refused)
	return setRef(repo, store.CheckoutRef(c.key, store.AnchorTip), commit)
}

// skip notes what is left out: what a move told is of the paths that it changed.
func (c *checkout) skip(repo *history.Repository, tree object.ID, refused []worktree.Skip) {
	var all []report.Skip
	told := map[string]bool{}
	for _, skip := range refused {
		told[skip.Path] = true
		all = append(all, report.Skip{Path: skip.Path, Why: skip.Reason.String()})
	}
	for _, before := range c.skipped {
		if _, err := repo.Find(tree, before.Path); err == nil && !told[before.Path] {
			all = append(all, before)
		}
	}
	c.skipped = all
}

// complete finishes the move that a crash may have left half-way.
func (f *Followers) complete(ctx context.Context, c *checkout) error {
	next, err := f.kept(ctx, c.repository, c.key, store.AnchorNext)
	if err != nil {
		return err
	}
	if _, err := f.move(ctx, c, sight{commit: next}); err != nil {
		return fmt.Errorf("finish what was begun before the restart: %w", err)
	}
	return nil
}

// kept is a commit that the store keeps for a checkout.
func (f *Followers) kept(ctx context.Context, repository store.Repository, key string, anchor store.Anchor) (object.ID, error) {
	release, err := repository.Use(ctx)
	if err != nil {
		return object.ID{}, err
	}
	defer release()
	repo, err := history.Open(repository.Dir())
	if err != nil {
		return object.ID{}, err
	}
	defer repo.Close()
	commit, err := repo.Ref(store.CheckoutRef(key, anchor))
	if err == nil {
		_, err = repo.CommitTree(commit)
	}
	return commit, err
}

// setRef writes only what is new.
func setRef(repo *history.Repository, name string, id object.ID) error {
	now, err := repo.Ref(name)
	if err != nil && !errors.Is(err, history.ErrNoRef) {
		return err
	}
	if now == id {
		return nil
	}
	return repo.SetRef(name, id, now)
}
