package nodevolume_test

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

// A pod can stop while the repository of its volume is lost and the remote, which would give
// it anew, does not answer.
func TestStopWaitsForNoFetch(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	answers, asked := make(chan struct{}, 1), make(chan struct{})
	answers <- struct{}{}
	said := sync.OnceFunc(func() { close(asked) })
	server := gittest.StartHTTP(t, filepath.Dir(upstream.Dir), gittest.HTTPOptions{Around: func(git http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case pass := <-answers:
				git.ServeHTTP(w, r)
				answers <- pass
			default:
				said()
				<-r.Context().Done()
			}
		})
	}})
	dir := newDir(t)
	p := newProcess(t, dir)
	v := p.volume(wants(server.URL("/" + filepath.Base(upstream.Dir)))).publish()
	pass := <-answers
	check(t, os.Rename(p.repositories()[0], filepath.Join(t.TempDir(), "lost")))
	v.write("b", "1")
	<-asked
	stopped := make(chan error, 1)
	go func() { stopped <- v.Stop(t.Context(), time.Minute) }()
	select {
	case err := <-stopped:
		check(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the remote")
	}
	p.end()

	answers <- pass
	p = newProcess(t, dir)
	v = p.volume(v.wish).publish()
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.stop()
	p.end()
}
