package persistentvolume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// watchAtLeast is the shortest time the API server is asked to serve a
	// watch, twice it the longest: spread, the watches of a node do not end together.
	watchAtLeast = 10 * time.Minute
	// watchGrace is how much longer the client waits for that end. Over HTTP/2
	// a dead connection is found by its pings within a minute; through a proxy
	// that speaks HTTP/1.1 this bound is what finds it.
	watchGrace = 30 * time.Second
)

// notice is one line of a watch.
type notice struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

// watch applies to f what the API server says about f.name after version, until
// the watch ends. The names of f and of what arrives are compared: an answer
// about another volume is never f's.
func (v *View) watch(ctx context.Context, f *follow, version string) error {
	serve := watchAtLeast + rand.N(watchAtLeast)
	ctx, cancel := context.WithTimeout(ctx, serve+watchGrace)
	defer cancel()
	var body io.ReadCloser
	var err error
	apart(func() { body, err = v.open(ctx, f.name, version, serve) })
	if expired(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch PersistentVolume %q: %w", f.name, err)
	}
	defer func() { _ = body.Close() }()
	decoder := json.NewDecoder(body)
	for {
		var n notice
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch PersistentVolume %q: %w", f.name, err)
		}
		again, err := v.take(ctx, f, &n)
		if err != nil {
			return fmt.Errorf("watch PersistentVolume %q: %w", f.name, err)
		}
		if !again {
			return nil
		}
	}
}

// open asks for the watch of name, to be served as long as serve.
func (v *View) open(ctx context.Context, name, version string, serve time.Duration) (io.ReadCloser, error) {
	return v.config.Client.Get().Resource(resource).
		Param("watch", "true").
		Param("fieldSelector", selector(name)).
		Param("resourceVersion", version).
		Param("timeoutSeconds", strconv.Itoa(int(serve.Seconds()))).
		Stream(ctx)
}

// apart runs do in a goroutine of its own and waits for it. A request grows the
// stack of its goroutine several times over; the one that then waits in a watch
// for minutes must not keep that, a hundred times.
func apart(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

// take applies n and tells whether the watch goes on.
func (v *View) take(ctx context.Context, f *follow, n *notice) (bool, error) {
	o := &n.Object
	if n.Type == "ERROR" {
		if o.Code == http.StatusGone {
			return false, nil
		}
		return false, fmt.Errorf("the API server ended it: %d %s: %q", o.Code, o.Reason, o.Message)
	}
	if o.Kind != "PersistentVolume" || o.Metadata.Name != f.name {
		return false, fmt.Errorf("an answer about %s %q", o.Kind, o.Metadata.Name)
	}
	switch n.Type {
	case "ADDED", "MODIFIED":
		v.apply(ctx, f, o.volume(v.config.Annotations), true)
	case "DELETED":
		v.apply(ctx, f, Volume{}, false)
	default:
		return false, fmt.Errorf("an answer of the unknown type %q", n.Type)
	}
	return true, nil
}
