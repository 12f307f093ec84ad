package nodevolume_test

import (
	"context"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// hold has nobody get the repository of a URL until release: somebody uses it, and somebody
// who waits for that wants it alone.
func (p *process) hold(text string) (release func()) {
	p.t.Helper()
	url, err := attributes.ParseURL(text)
	check(p.t, err)
	repository := p.store.Repository(url, 0)
	done, err := repository.Use(p.t.Context())
	check(p.t, err)
	instance, err := repository.Instance()
	check(p.t, err)
	ctx, giveUp := context.WithCancel(p.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = repository.SetAside(ctx, instance, "a test holds it")
	}()
	within(p.t, 2*time.Minute, func() bool {
		moment, cancel := context.WithTimeout(p.t.Context(), 10*time.Millisecond)
		defer cancel()
		free, err := repository.Use(moment)
		if err == nil {
			free()
		}
		return err != nil
	}, func() string { return "nobody wants it alone" })
	return func() {
		giveUp()
		<-ended
		done()
	}
}

// asked is a context that tells when somebody waits for its end.
type asked struct {
	context.Context
	asked chan struct{}
	once  func()
}

func newAsked(ctx context.Context) *asked {
	a := &asked{Context: ctx, asked: make(chan struct{})}
	a.once = sync.OnceFunc(func() { close(a.asked) })
	return a
}

// Done implements context.Context.
func (a *asked) Done() <-chan struct{} {
	a.once()
	return a.Context.Done()
}

// followed is how many volumes the process follows.
func followed() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "writeable.(*Volume).Run(")
}

// away moves the remote away, until back.
func (v *volume) away() (back func()) {
	v.p.t.Helper()
	check(v.p.t, os.Rename(v.wish.url, v.wish.url+".away"))
	return func() { check(v.p.t, os.Rename(v.wish.url+".away", v.wish.url)) }
}
