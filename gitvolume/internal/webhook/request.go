package webhook

import (
	"context"
	"errors"
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
	body, problem := readBody(to, r)
	if problem != nil {
		return *problem
	}
	refusal := time.After(refusedAfter)
	name, reason := w.verify(r, body)
	if reason == nil {
		return w.accept(r.Context(), name, r.Header, body)
	}
	w.refusals.tell(w.settings.Log, quote.Value(r.URL.Path), reason)
	select {
	case <-r.Context().Done():
	case <-refusal:
	}
	return w.refusal()
}

// readBody reads it within its bounds, the same way for all paths.
func readBody(to http.ResponseWriter, r *http.Request) ([]byte, *answer) {
	large := &answer{tooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", bodyLimit)}
	if r.ContentLength > bodyLimit {
		to.Header().Set("Connection", "close")
		return nil, large
	}
	body, err := io.ReadAll(http.MaxBytesReader(to, r.Body, bodyLimit))
	var beyond *http.MaxBytesError
	switch {
	case errors.As(err, &beyond):
		return nil, large
	case err != nil:
		to.Header().Set("Connection", "close")
		return nil, &answer{tooSlow, http.StatusRequestTimeout, "the body did not arrive"}
	}
	return body, nil
}

// verify gives the Secret that a request is signed with, or why there is none, which is not
// for the sender.
func (w *Webhook) verify(r *http.Request, body []byte) (secretName, error) {
	secret, name, reason := w.secretOf(r)
	if reason != nil {
		secret = w.nobodys
	}
	if !isSigned(r.Header, body, secret) && reason == nil {
		reason = errors.New("no header has a signature with the Secret, or the Secret itself")
	}
	return name, reason
}

// secretOf finds the Secret that the path names.
func (w *Webhook) secretOf(r *http.Request) ([]byte, secretName, error) {
	path, isBelow := strings.CutPrefix(r.URL.Path, pathPrefix)
	namespace, secret, _ := strings.Cut(path, "/")
	name := secretName{namespace, secret}
	if !isBelow || !w.targets.isNamed(name) {
		return nil, name, errors.New("no read-only volume of the namespace names the Secret in webhookSecret")
	}
	// Who waits with it for the Secret is not to be failed by a sender who leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), secretWithin)
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
func (w *Webhook) accept(ctx context.Context, secret secretName, header http.Header, body []byte) answer {
	log := w.settings.Log.With("secret", secret.namespace+"/"+secret.name)
	p, err := parsePush(header, body)
	if err != nil {
		log.Info("a webhook's request is no push", "error", err)
		return answer{notPush, http.StatusBadRequest, err.Error()}
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
	return answer{accepted, http.StatusAccepted, fmt.Sprintf("%d volumes pull %s", len(found), p.ref)}
}

// mark marks the volumes, and returns those that it could not within the patience of a
// sender, and why. What takes longer is marked all the same.
func (w *Webhook) mark(ctx context.Context, found []target) (failed []target, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := make([]*mark, 0, len(found))
	for _, t := range found {
		asked = append(asked, w.marks.ask(t))
	}
	for _, m := range asked {
		select {
		case <-m.done:
		case <-ctx.Done():
			return failed, err
		}
		if m.err != nil {
			failed, err = append(failed, m.target), m.err
		}
	}
	return failed, err
}
