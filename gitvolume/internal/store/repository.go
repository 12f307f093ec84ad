package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/storedir"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/history"
)

// nameBytes is how many bytes of a sum a repository's name has, in hexadecimal digits.
const nameBytes = 20

// longestAbout bounds what is read of a repository's note, in bytes.
const longestAbout = 64 << 10

// Repository is the one object store of all volumes of a URL and a depth. It is a name:
// nothing is on the disk until it is used.
type Repository struct {
	URL   attributes.URL
	Depth int
	store *Store
	name  string
}

// repositoryText is the note in a repository. It is written when all else is there, so
// that a repository without it was never used.
type repositoryText struct {
	URL   attributes.URL `json:"url"`
	Depth int            `json:"depth"`
}

// Repository is that of a URL, as it is written, and a depth.
func (s *Store) Repository(url attributes.URL, depth int) Repository {
	return Repository{URL: url, Depth: depth, store: s, name: repositoryName(url, depth)}
}

func repositoryName(url attributes.URL, depth int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", depth, url))
	return hex.EncodeToString(sum[:nameBytes])
}

// repositoryNames are those of the repositories, whole or not. What else is among them is
// somebody else's, and left alone.
func (s *Store) repositoryNames() ([]string, error) {
	names, err := storedir.Names(s.repos)
	if err != nil {
		return nil, fmt.Errorf("list the repositories: %w", err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return len(name) != 2*nameBytes || strings.Trim(name, "0123456789abcdef") != ""
	}), nil
}

// Repositories are all that were ever used and not removed, in the order of their URLs.
func (s *Store) Repositories() ([]Repository, error) {
	names, err := s.repositoryNames()
	if err != nil {
		return nil, err
	}
	var found []Repository
	for _, name := range names {
		if r, err := s.named(name); err == nil {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b Repository) int {
		if a.URL.String() != b.URL.String() {
			return strings.Compare(a.URL.String(), b.URL.String())
		}
		return a.Depth - b.Depth
	})
	return found, nil
}

// named reads of which URL and depth a repository is.
func (s *Store) named(name string) (Repository, error) {
	dir, err := storedir.OpenDir(s.repos, name)
	if err != nil {
		return Repository{}, err
	}
	defer dir.Close()
	text, err := storedir.ReadFile(dir, aboutFile, longestAbout)
	if err != nil {
		return Repository{}, err
	}
	var about repositoryText
	if err := json.Unmarshal(text, &about); err != nil {
		return Repository{}, fmt.Errorf("read of what a repository is: %w", err)
	}
	if r := s.Repository(about.URL, about.Depth); r.name == name {
		return r, nil
	}
	return Repository{}, fmt.Errorf("repository %q says that it is one of %q", name, about.URL)
}

// Dir is the path of the bare repository, which is there while it is used.
func (r Repository) Dir() string { return r.store.path(reposDir, r.name) }

// Use makes the repository, if there is none, and keeps it from being set aside or
// removed until release is called. Whatever reads or changes it does so within a use,
// except that a volume's record has to be saved before any ref is made for it. Uses are not to
// be nested: one waits for another that waits to have the repository alone. When ctx ends
// before, the error wraps keyedmutex.ErrBusy.
func (r Repository) Use(ctx context.Context) (release func(), err error) {
	if r.URL.IsZero() {
		return nil, errors.New("use a repository: it has no URL")
	}
	release, err = r.store.guards.share(ctx, r.name)
	if err != nil {
		return nil, fmt.Errorf("use the repository of %q: %w", r.URL, err)
	}
	if r.isThere() {
		return release, nil
	}
	release()
	return r.makeAndUse(ctx)
}

// makeAndUse makes the repository while nobody else can. Who comes while another makes it
// does not want it alone: he would have to wait until all have left that use it by then.
func (r Repository) makeAndUse(ctx context.Context) (release func(), err error) {
	unlock, err := r.store.making.Lock(ctx, r.name)
	if err != nil {
		return nil, fmt.Errorf("use the repository of %q: %w", r.URL, err)
	}
	defer unlock()
	for {
		release, err = r.store.guards.share(ctx, r.name)
		if err != nil {
			return nil, fmt.Errorf("use the repository of %q: %w", r.URL, err)
		}
		if r.isThere() {
			return release, nil
		}
		release() // Nobody has made it yet, or it was removed in between.
		alone, err := r.store.guards.seize(ctx, r.name)
		if err == nil {
			if !r.isThere() {
				err = r.make()
			}
			alone()
		}
		if err != nil {
			return nil, fmt.Errorf("use the repository of %q: %w", r.URL, err)
		}
	}
}

func (r Repository) isThere() bool {
	info, err := os.Lstat(filepath.Join(r.Dir(), aboutFile))
	return err == nil && info.Mode().IsRegular()
}

func (r Repository) make() error {
	if err := storedir.StillAt(r.store.repos); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	if err := isDirectoryOrMissing(r.Dir()); err != nil {
		return err
	}
	r.store.step("make repository")
	if err := history.Create(r.Dir()); err != nil {
		return err
	}
	r.store.step("name repository")
	return r.writeAbout()
}

func (r Repository) writeAbout() error {
	text, err := json.MarshalIndent(repositoryText{URL: r.URL, Depth: r.Depth}, "", "  ")
	if err == nil {
		err = durable.Replace(filepath.Join(r.Dir(), aboutFile), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("say of what the repository is: %w", err)
	}
	return nil
}

// isDirectoryOrMissing refuses a link, which would be followed.
func isDirectoryOrMissing(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%q: %w", path, storedir.ErrNotADirectory)
	}
	return err
}

// Instance tells one repository from the next that is made in its place. Who keeps a
// handle of it from one use to another looks whether it still is of the same instance:
// the handle of one that was set aside would find objects that the new one does not have.
func (r Repository) Instance() (Identity, error) {
	found, err := Identify(r.Dir())
	if err != nil {
		return Identity{}, fmt.Errorf("look at the repository of %q: %w", r.URL, err)
	}
	return found, nil
}

// longestSeizing is how long a repository that is to be set aside is waited for. Nobody may
// use it meanwhile, not even for the last commit of a pod that stops, and one of those who use
// it may be waiting for its remote for an hour.
const longestSeizing = 10 * time.Second

// errInUse is why nobody waits for longer.
var errInUse = errors.New("others are at work on it")

// SetAside moves a repository that cannot be used any more to where somebody can look at
// it, waits a while for those who use it, and gives the path there. The next use makes a new
// one. instance is the one that was found to be broken: if it is another by now, nothing is
// moved, and the path is empty. Some of what is aside longest goes. When others use it for too
// long, the error wraps keyedmutex.ErrBusy, and it is to be tried again later.
func (r Repository) SetAside(ctx context.Context, instance Identity, why string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestSeizing, errInUse)
	defer cancel()
	release, err := r.store.guards.seize(ctx, r.name)
	if err != nil {
		return "", fmt.Errorf("set the repository of %q aside: %w", r.URL, err)
	}
	defer release()
	now, err := Identify(r.Dir())
	if errors.Is(err, fs.ErrNotExist) || err == nil && now != instance {
		return "", nil // Somebody else did it.
	}
	if err != nil && !errors.Is(err, storedir.ErrNotADirectory) {
		return "", fmt.Errorf("set the repository of %q aside: %w", r.URL, err)
	}
	path, err := r.store.setAsideRepository(r.name, about{Repository: r.URL.String(), Why: why})
	if err != nil {
		return "", fmt.Errorf("set the repository of %q aside: %w", r.URL, err)
	}
	return path, nil
}

// setAsideRepository moves it; the caller has it alone.
func (s *Store) setAsideRepository(name string, note about) (string, error) {
	path, err := s.setAside(s.repos, name, note)
	if err != nil {
		return "", err
	}
	s.settings.Log.Warn("a repository was set aside", "url", note.Repository, "path", path, "why", note.Why)
	if err := s.thinAside(name); err != nil {
		s.settings.Log.Warn("repositories that were set aside earlier stay", "error", err)
	}
	return path, nil
}
