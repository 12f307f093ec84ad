package readonly_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
)

// upstream is a remote without a network, for tests of time. It has one branch, main, with
// some files that all hold the same.
type upstream struct {
	files int // Beside f.

	mu sync.Mutex
	// content is what the branch's only file holds, and made the commit of each content.
	content string
	// looking and fetching are how long it takes, err is what becomes of it.
	looking, fetching time.Duration
	err               error
	// hangs has all wait until the caller gives up.
	hangs   bool
	looks   int
	fetches int
	// made are the commits, which are in a repository of its own.
	made map[string]object.ID
	dir  string
}

func (u *upstream) set(change func(u *upstream)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

func (u *upstream) push(content string) { u.set(func(u *upstream) { u.content = content }) }

func (u *upstream) asked() (looks, fetches int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.looks, u.fetches
}

// of is the Remote.
func (u *upstream) of(asked readonly.Asked) readonly.Remote {
	return &branch{upstream: u, asked: asked}
}

type branch struct {
	*upstream
	asked readonly.Asked
}

func (b *branch) wait(ctx context.Context, count *int, length *time.Duration) (string, error) {
	b.mu.Lock()
	*count++
	content, took, err, hangs := b.content, *length, b.err, b.hangs
	b.mu.Unlock()
	if hangs {
		took = time.Minute
		err = &remote.Failure{Kind: remote.ErrStalled}
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return content, err
}

// tip is the commit of the content.
func (u *upstream) tip(content string) (object.ID, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if id, known := u.made[content]; known {
		return id, nil
	}
	if u.dir == "" {
		var err error
		if u.dir, err = os.MkdirTemp(scratch, "u"); err != nil {
			return object.ID{}, err
		}
		if err := history.Create(u.dir); err != nil {
			return object.ID{}, err
		}
		u.made = map[string]object.ID{}
	}
	id, err := commitTo(u.dir, content, u.files)
	u.made[content] = id
	return id, err
}

// commitTo makes the commit of the content, which has the same id in every repository.
func commitTo(dir, content string, files int) (object.ID, error) {
	repo, err := history.Open(dir)
	if err != nil {
		return object.ID{}, err
	}
	defer repo.Close()
	blob, err := repo.Blob([]byte(content))
	if err != nil {
		return object.ID{}, err
	}
	changes := []history.Change{{Path: "f", Mode: object.Regular, Blob: blob}}
	for i := range files {
		changes = append(changes, history.Change{Path: fileName(i), Mode: object.Regular, Blob: blob})
	}
	tree, err := repo.Edit(object.ID{}, changes)
	if err != nil {
		return object.ID{}, err
	}
	who := history.Signature{Name: "n", Email: "e", When: time.Unix(1e9, 0)}
	id, err := repo.Commit(history.Draft{Tree: tree, Author: who, Committer: who, Message: content + "\n"})
	if err != nil {
		return object.ID{}, err
	}
	return id, repo.Flush()
}

func (b *branch) Look(ctx context.Context, names []string) (map[string]readonly.Looked, error) {
	content, err := b.wait(ctx, &b.looks, &b.looking)
	if err != nil {
		return nil, err
	}
	tip, err := b.tip(content)
	looked := map[string]readonly.Looked{}
	for _, name := range names {
		looked[name] = readonly.Looked{Ref: remote.Ref{Name: "refs/heads/" + strings.TrimPrefix(name, "refs/heads/"), Tip: tip, Peeled: tip}}
	}
	return looked, err
}

func (b *branch) LookAnew(ctx context.Context, names []string) (map[string]readonly.Looked, error) {
	return b.Look(ctx, names)
}

func (b *branch) Fetch(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error) {
	if urgency == remote.Background {
		release, err := b.asked.Hold(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= 10*time.Second {
		return nil, remote.ErrInProgress
	}
	content, err := b.wait(ctx, &b.fetches, &b.fetching)
	if err != nil {
		return nil, err
	}
	tip, err := commitTo(b.asked.Repository.Dir(), content, b.files)
	if err != nil {
		return nil, err
	}
	repo, err := history.Open(b.asked.Repository.Dir())
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	fetched := map[string]remote.Fetched{}
	for from, to := range refs {
		now, _ := repo.Ref(to)
		if now != tip {
			if err := repo.SetRef(to, tip, now); err != nil {
				return nil, err
			}
		}
		fetched[from] = remote.Fetched{Tip: tip, Commit: tip}
	}
	return fetched, nil
}

func (b *branch) FetchAnew(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error) {
	return b.Fetch(ctx, refs, urgency)
}

// fileName is one of the files beside f.
func fileName(i int) string { return fmt.Sprintf("d%d/f%d", i%7, i) }
