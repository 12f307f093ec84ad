package persistentvolume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/client-go/rest"
)

// ErrUnread is wrapped while a Catalogue does not know what the cluster has.
var ErrUnread = errors.New("the PersistentVolumes of the cluster cannot be read")

// CatalogueConfig is what a Catalogue needs. All but Current must be set.
type CatalogueConfig[T comparable] struct {
	Client rest.Interface
	Log    *slog.Logger
	// Driver is whose volumes are looked at.
	Driver string
	// Keep gives what is kept of a volume; false: nothing.
	Keep func(Volume) (T, bool)
	// Changed is told what is kept of the volume of a name when that changes, and with
	// false when nothing is any more. Current is told that the cluster is read, at the
	// start and after each time that it could not be. Neither is called while the other is.
	Changed func(name string, kept T, isKept bool)
	Current func()
}

// Catalogue follows all PersistentVolumes of one driver in a cluster with one list and one
// watch. It is for a controller, of which there are a few in a cluster, and holds what is
// kept of its driver's volumes alone: those of others pass by one at a time.
type Catalogue[T comparable] struct {
	config CatalogueConfig[T]
	// kept is what Changed was told. It is Run's.
	kept map[string]T

	mu       sync.Mutex
	isListed bool
	failure  error
}

// NewCatalogue makes one that knows nothing yet.
func NewCatalogue[T comparable](config CatalogueConfig[T]) *Catalogue[T] {
	return &Catalogue[T]{config: config, kept: map[string]T{}}
}

// Unread is nil while what Changed told is what the cluster has. It asks nobody. The error
// wraps ErrUnread; what was told last stays the best that is known.
func (c *Catalogue[T]) Unread() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.failure != nil:
		return fmt.Errorf("%w: %w", ErrUnread, c.failure)
	case !c.isListed:
		return fmt.Errorf("%w yet", ErrUnread)
	}
	return nil
}

// Run follows the volumes until ctx ends. It is called once.
func (c *Catalogue[T]) Run(ctx context.Context) {
	version := ""
	keepTrying(ctx, func() (err error) {
		version, err = c.attempt(ctx, version)
		return err
	}, c.failed)
}

// attempt goes on from a version, "" where all has to be read, and returns from which the
// next one may.
func (c *Catalogue[T]) attempt(ctx context.Context, version string) (string, error) {
	if version == "" {
		var err error
		apart(func() { version, err = c.list(ctx) })
		if err != nil {
			return "", fmt.Errorf("list PersistentVolumes: %w", err)
		}
		c.succeeded()
	}
	version, err := c.watch(ctx, version)
	if err != nil {
		return version, fmt.Errorf("watch PersistentVolumes: %w", err)
	}
	return version, nil
}

// list replaces what is kept by what is there.
func (c *Catalogue[T]) list(ctx context.Context) (version string, err error) {
	var found map[string]T
	err = listWhole(c.config.Log, func() (err error) {
		found = map[string]T{}
		version, err = readPages(ctx, c.config.Client, func(o *object) {
			if kept, is := c.read(o); is {
				found[o.Metadata.Name] = kept
			}
		})
		return err
	})
	if err != nil {
		return "", err
	}
	for name := range c.kept {
		if _, is := found[name]; !is {
			c.drop(name)
		}
	}
	for name, kept := range found {
		c.keep(name, kept)
	}
	return version, nil
}

// watch applies what happens after version, until the API server ends it, and returns the
// version to go on from; "" where the API server has forgotten it.
func (c *Catalogue[T]) watch(ctx context.Context, version string) (string, error) {
	serve := watchAtLeast + rand.N(watchAtLeast)
	ctx, cancel := context.WithTimeout(ctx, serve+watchGrace)
	defer cancel()
	body, err := c.config.Client.Get().Resource(resource).
		Param("watch", "true").
		Param("allowWatchBookmarks", "true"). // keep the version young where nothing happens
		Param("resourceVersion", version).
		Param("timeoutSeconds", strconv.Itoa(int(serve.Seconds()))).
		Stream(ctx)
	if expired(err) {
		return "", nil
	}
	if err != nil {
		return version, err
	}
	defer func() { _ = body.Close() }()
	c.succeeded()
	decoder := json.NewDecoder(body)
	for {
		var n notice
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return version, nil
		}
		if err != nil {
			return "", err // What it was about is not known, so all is read again.
		}
		next, err := c.take(&n)
		if next == "" || err != nil {
			return next, err
		}
		version = next
	}
}

// take applies n and returns its version. An answer that cannot be understood says nothing
// about what is there: all is read again.
func (c *Catalogue[T]) take(n *notice) (version string, err error) {
	o := &n.Object
	switch {
	case n.Type == "ERROR" && o.Code == http.StatusGone:
		return "", nil
	case n.Type == "ERROR":
		return "", fmt.Errorf("the API server ended it: %d %s: %q", o.Code, o.Reason, o.Message)
	case o.Kind != "PersistentVolume" || o.Metadata.ResourceVersion == "":
		return "", fmt.Errorf("an answer about %s %q", o.Kind, o.Metadata.Name)
	}
	switch n.Type {
	case "BOOKMARK":
	case "ADDED", "MODIFIED":
		if kept, is := c.read(o); is {
			c.keep(o.Metadata.Name, kept)
		} else {
			c.drop(o.Metadata.Name)
		}
	case "DELETED":
		c.drop(o.Metadata.Name)
	default:
		return "", fmt.Errorf("an answer of the unknown type %q", n.Type)
	}
	return o.Metadata.ResourceVersion, nil
}

func (c *Catalogue[T]) read(o *object) (kept T, is bool) {
	if !o.is(c.config.Driver) {
		return kept, false
	}
	return c.config.Keep(o.volume(nil))
}

func (c *Catalogue[T]) keep(name string, kept T) {
	if had, is := c.kept[name]; is && had == kept {
		return
	}
	c.kept[name] = kept
	c.config.Changed(name, kept, true)
}

func (c *Catalogue[T]) drop(name string) {
	if _, is := c.kept[name]; !is {
		return
	}
	delete(c.kept, name)
	var none T
	c.config.Changed(name, none, false)
}

func (c *Catalogue[T]) failed(err error) {
	c.mu.Lock()
	isFirst := c.failure == nil
	c.failure = err
	c.mu.Unlock()
	if isFirst {
		c.config.Log.Warn("cannot read PersistentVolumes; what is known of them stays", "error", err)
		return
	}
	c.config.Log.Debug("cannot read PersistentVolumes", "error", err)
}

func (c *Catalogue[T]) succeeded() {
	c.mu.Lock()
	wasListed, hadFailed := c.isListed, c.failure != nil
	c.isListed, c.failure = true, nil
	c.mu.Unlock()
	if hadFailed {
		c.config.Log.Info("PersistentVolumes are read again")
	}
	if (hadFailed || !wasListed) && c.config.Current != nil {
		c.config.Current()
	}
}
