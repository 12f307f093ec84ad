package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"liken.sh/csicommon/quote"
)

const (
	// bodyLimit is the largest body, in bytes: forges cut theirs far below.
	bodyLimit = 1 << 20
	// readTimeout is how long a request may take to arrive.
	readTimeout = 10 * time.Second
	// refusedAfter is when a request is refused, whatever is wrong with it, counted from
	// its last byte. Reading a Secret has to be over by then.
	refusedAfter = 2 * time.Second
	// A body of which the start is not the whole is read on no sooner than that, whosever it
	// is: the rest needs the Secret, and how long it is waited for must not be seen.
	secretWithin = refusedAfter - 500*time.Millisecond
	// patience is how long a request waits for its volumes to be marked. Forges wait for
	// ten seconds.
	patience = 8 * time.Second

	pathPrefix = "/webhook/"
)

// The words of answers that say nothing.
const (
	saysRefused = "refused"
	saysUnread  = "the cluster cannot be read, what was pushed is pulled when it can be"
)

// errUnnamed is why most of what is refused is.
var errUnnamed = fmt.Errorf("no read-only volume of the namespace names the Secret in webhookSecret: %w", errNoSecret)

// answer is what a request is told.
type answer struct {
	result result
	code   int
	says   string
}

// ServeHTTP serves POST /webhook/<namespace>/<secret>.
func (w *Webhook) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	a := w.answer(to, r)
	w.meters.requested(a.result)
	to.Header().Set("Content-Type", "text/plain; charset=utf-8")
	to.Header().Set("X-Content-Type-Options", "nosniff")
	to.WriteHeader(a.code)
	_, _ = io.WriteString(to, a.says+"\n") // who left has no use for an error
}

func (w *Webhook) answer(to http.ResponseWriter, r *http.Request) answer {
	if r.Method != http.MethodPost {
		to.Header().Set("Allow", http.MethodPost)
		return answer{refused, http.StatusMethodNotAllowed, "only POST is served"}
	}
	if r.ContentLength > bodyLimit {
		to.Header().Set("Connection", "close")
		return tooLargeAnswer()
	}
	// The Secret is read meanwhile, so that nobody can tell by the pace of the body that it is.
	began, found := time.Now(), w.resolve(r)
	b := &body{rest: http.MaxBytesReader(to, r.Body, bodyLimit)}
	b.begin(r.ContentLength)
	if !b.isWhole && b.err == nil {
		pause(r.Context(), time.Until(began.Add(secretWithin)))
	}
	if b.err != nil {
		return b.problem(to)
	}
	arrived := time.Now()
	s := <-found
	signed := signatureOf(r.Header)
	p, noPush := w.readPush(r.Header, b, &s, signed)
	if b.err != nil {
		return b.problem(to)
	}
	if !b.isWhole {
		arrived = time.Now()
	}
	if s.reason == nil {
		return w.accept(r.Context(), s.name, p, noPush)
	}
	isHeld := isOutage(s.reason) && noPush == nil && w.hold(s.name, signed, p, b)
	w.refusals.tell(w.settings.Log, quote.Value(r.URL.Path), s.reason, isHeld)
	pause(r.Context(), time.Until(arrived.Add(refusedAfter)))
	a := w.refusal()
	if isHeld && a.result == refused {
		a.result = heldBack
	}
	return a
}

// readPush reads the body to its end, and sets why the request is refused that has no right
// signature. What it has may be no push.
func (w *Webhook) readPush(header http.Header, b *body, s *resolved, signed signature) (push, error) {
	secret := s.value
	if s.reason != nil {
		secret = w.nobodys
	}
	sum := newSum(secret)
	in := io.TeeReader(b, sum)
	p, noPush := parsePush(header, in)
	_, _ = io.Copy(io.Discard, in) // b keeps the error
	if !signed.isOf(secret, sum.Sum(nil)) && s.reason == nil {
		s.reason = fmt.Errorf("no header has a signature with the Secret, or the Secret itself: %w", errNoSecret)
	}
	return p, noPush
}

// pause waits, less if the sender leaves.
func pause(ctx context.Context, by time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(by):
	}
}

// resolved is the Secret of a path, or why there is none, which is not for the sender.
type resolved struct {
	name   secretName
	value  []byte
	reason error
}

// resolve has the Secret be read, for secretWithin at most.
func (w *Webhook) resolve(r *http.Request) <-chan resolved {
	found := make(chan resolved, 1)
	go func() {
		var s resolved
		s.value, s.name, s.reason = w.secretOf(r.Context(), r.URL.Path)
		found <- s
	}()
	return found
}

// secretOf finds the Secret that the path names.
func (w *Webhook) secretOf(ctx context.Context, path string) ([]byte, secretName, error) {
	path, isBelow := strings.CutPrefix(path, pathPrefix)
	namespace, secret, _ := strings.Cut(path, "/")
	name := secretName{namespace, secret}
	if !isBelow || !w.targets.isNamed(name) {
		return nil, name, errUnnamed
	}
	// Who waits with it for the Secret is not to be failed by a sender who leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), secretWithin)
	defer cancel()
	value, err := w.secrets.get(ctx, name)
	return value, name, err
}

// refusal is what everybody is told who is refused. It depends on nothing that a request
// says.
func (w *Webhook) refusal() answer {
	if w.catalogue.Unread() != nil {
		w.lose()
		return answer{unread, http.StatusInternalServerError, saysUnread}
	}
	return answer{refused, http.StatusUnauthorized, saysRefused}
}

// lose notes that a push may be lost, of whatever, since the cluster cannot be read.
func (w *Webhook) lose() {
	w.backlog.addAll()
	if w.catalogue.Unread() == nil {
		w.wake() // It is read by now, and nobody else would.
	}
}

// accept marks the volumes that a signed request is about.
func (w *Webhook) accept(ctx context.Context, secret secretName, p push, noPush error) answer {
	log := w.settings.Log.With("secret", secret.String())
	if noPush != nil {
		log.Info("a webhook's request is no push", "error", noPush)
		return answer{notPush, http.StatusBadRequest, noPush.Error()}
	}
	if w.catalogue.Unread() != nil {
		w.lose() // There may be volumes that are not known.
		return answer{unread, http.StatusInternalServerError, saysUnread}
	}
	found := w.targets.of(secret, p)
	log = log.With("repo", p.repositories[0], "ref", p.ref, "volumes", len(found))
	if failed, err := w.mark(ctx, found); err != nil {
		w.backlog.add(failed)
		w.wake()
		log.Warn("not every volume of a push could be marked, trying again", "failed", len(failed), "error", err)
		return answer{unread, http.StatusInternalServerError, saysUnread}
	}
	log.Info("a push has volumes pull")
	return answer{accepted, http.StatusAccepted, saysAccepted(len(found), p.ref)}
}

func saysAccepted(volumes int, ref string) string {
	if volumes == 1 {
		return "1 volume pulls " + ref
	}
	return fmt.Sprintf("%d volumes pull %s", volumes, ref)
}

// mark marks the volumes, and returns those that it could not within the patience of a
// sender, and why. What takes longer is marked all the same, and what then fails tried again.
func (w *Webhook) mark(ctx context.Context, found []target) (failed []target, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := make([]*mark, 0, len(found))
	for _, t := range found {
		asked = append(asked, w.marks.ask(t))
	}
	for i, m := range asked {
		select {
		case <-m.done:
		case <-ctx.Done():
			go w.follow(asked[i:])
			return failed, err
		}
		if m.err != nil {
			failed, err = append(failed, m.target), m.err
		}
	}
	return failed, err
}

// follow has marks be tried again that fail when nobody waits for them any more. Each ends,
// since making it does.
func (w *Webhook) follow(asked []*mark) {
	for _, m := range asked {
		<-m.done
		if m.err == nil {
			continue
		}
		w.settings.Log.Warn("a volume cannot be marked, trying again", "volume", m.target.volume, "error", m.err)
		w.backlog.add([]target{m.target})
		w.wake()
	}
}
