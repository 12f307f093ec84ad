package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// post tells the API server of o: it counts up the Event that is there, or
// creates one.
func (p *Poster) post(ctx context.Context, k key, o occurrences) {
	err := p.bring(ctx, k, o)
	if err != nil {
		p.drop(k, o.count, slog.Any("error", err))
	}
}

func (p *Poster) bring(ctx context.Context, k key, o occurrences) error {
	there, found := p.posted.get(k)
	if found && o.first.Sub(there.last) > window {
		found = false
	}
	if !found && o.first.Sub(p.unsure) <= window {
		var err error
		if there, found, err = p.find(ctx, k, o.first); err != nil {
			return err
		}
	}
	if !found {
		return p.create(ctx, k, o)
	}
	there.count += o.count
	there.last = o.last
	err := p.countUp(ctx, k, there)
	if apierrors.IsNotFound(err) {
		// It expired or somebody deleted it. The new one knows nothing of the
		// occurrences before: a patch that gets 404 must not be retried for ever.
		return p.create(ctx, k, o)
	}
	if err != nil {
		return err
	}
	p.keep(k, there)
	return nil
}

// countUp sets count and lastTimestamp, absolute values: doing it twice is no harm.
func (p *Poster) countUp(ctx context.Context, k key, r record) error {
	patch, err := json.Marshal(struct {
		Count         int    `json:"count"`
		LastTimestamp string `json:"lastTimestamp"`
	}{r.count, timestamp(r.last)})
	if err != nil {
		return fmt.Errorf("encode the patch of an Event: %w", err)
	}
	return p.call(ctx, func(ctx context.Context) error {
		return p.request(p.config.Client.Patch(types.MergePatchType), k).Name(r.name).Body(patch).Do(ctx).Error()
	})
}

func (p *Poster) create(ctx context.Context, k key, o occurrences) error {
	name := eventName(k.about.Name)
	body, err := json.Marshal(p.object(k, o, name))
	if err != nil {
		return fmt.Errorf("encode an Event: %w", err)
	}
	err = p.call(ctx, func(ctx context.Context) error {
		return p.request(p.config.Client.Post(), k).Body(body).Do(ctx).Error()
	})
	// The name is random: if it is taken, the first try of this very Event got
	// through and only its answer was lost.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		p.unsure = time.Now()
		return err
	}
	p.keep(k, record{name: name, count: o.count, last: o.last})
	return nil
}

// keep remembers r. When that forgets another Event that a repeat may still
// count up, repeats are looked for on the API server for a while.
func (p *Poster) keep(k key, r record) {
	forgotten, full := p.posted.put(k, r)
	if full && forgotten.last.Add(window).After(time.Now()) {
		p.unsure = time.Now()
	}
}

// call does one call of the API server with a bound, and once more if what went
// wrong may be over. (Answers with Retry-After are retried by client-go.)
func (p *Poster) call(ctx context.Context, do func(context.Context) error) error {
	err := bounded(ctx, do)
	if err == nil || final(err) || ctx.Err() != nil {
		return err
	}
	return bounded(ctx, do)
}

func bounded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return do(ctx)
}

// final tells an answer that a second try would get again, or a time spent that
// the Events behind this one should not spend twice.
func final(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err)
}

// request addresses the Events of k's object.
func (p *Poster) request(r *rest.Request, k key) *rest.Request {
	return r.Namespace(k.namespace()).Resource("events")
}

// namespace is where Events about k's object belong: the API server accepts
// those about an object of the cluster in "default".
func (k key) namespace() string {
	if k.about.Namespace == "" {
		return "default"
	}
	return k.about.Namespace
}

// eventName makes a DNS-1123 subdomain of the object's name and a random tail.
// An object's name may itself be as long as a name can be, so it is cut, and cut
// again to where a label may end.
func eventName(about string) string {
	const longest = 253
	tail := fmt.Sprintf("%016x", rand.Uint64())
	about = strings.TrimRight(about[:min(len(about), longest-len(tail)-1)], "-.")
	if about == "" {
		return tail
	}
	return about + "." + tail
}
