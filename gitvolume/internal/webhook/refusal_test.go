package webhook

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
)

// Whatever is wrong, a sender is told the same, after the same time to the nanosecond.
func TestRefusalsAreAlike(t *testing.T) {
	good := func(h *hook) delivery { return h.push() }
	signed := func(secret string) func(h *hook) delivery {
		return func(h *hook) delivery { return deliver("github", "push", secret, fixture(h.t, "github-push")) }
	}
	for name, row := range map[string]struct {
		path    string
		d       func(h *hook) delivery
		prepare func(h *hook)
	}{
		"a wrong signature":           {"/webhook/shop/forge", signed("wrong"), nil},
		"a wrong signature, cached":   {"/webhook/shop/forge", signed("wrong"), func(h *hook) { h.send("/webhook/shop/forge", h.push()) }},
		"no signature":                {"/webhook/shop/forge", func(h *hook) delivery { return deliver("nobody", "", "", fixture(h.t, "github-push")) }, nil},
		"a signature of nothing":      {"/webhook/shop/forge", signed(""), nil},
		"another namespace's secret":  {"/webhook/shop/forge", signed("other"), nil},
		"another body":                {"/webhook/shop/forge", func(h *hook) delivery { d := h.push(); d.body = append(d.body, ' '); return d }, nil},
		"an unknown Secret":           {"/webhook/shop/other", good, nil},
		"an unknown namespace":        {"/webhook/nobody/forge", good, nil},
		"a Secret that nobody names":  {"/webhook/shop/unnamed", signed("u"), func(h *hook) { h.server.PutSecret("shop", "unnamed", map[string]string{"secret": "u"}) }},
		"a Secret that is not there":  {"/webhook/shop/forge", good, func(h *hook) { h.server.DeleteSecret("shop", "forge") }},
		"a Secret without the key":    {"/webhook/shop/forge", signed(""), func(h *hook) { h.server.PutSecret("shop", "forge", map[string]string{"token": "x"}) }},
		"a Secret with an empty key":  {"/webhook/shop/forge", signed(""), func(h *hook) { h.server.PutSecret("shop", "forge", map[string]string{"secret": "\n"}) }},
		"a Secret that is forbidden":  {"/webhook/shop/forge", good, secretsAre(apiserver.Refuse(403))},
		"a Secret that is not read":   {"/webhook/shop/forge", good, secretsAre(apiserver.Refuse(500))},
		"a Secret that never comes":   {"/webhook/shop/forge", good, secretsAre(apiserver.Hold(nil))},
		"a Secret of a slow server":   {"/webhook/shop/forge", signed("wrong"), secretsAre(slowly(time.Second))},
		"a Secret that is half":       {"/webhook/shop/forge", good, secretsAre(apiserver.Truncate())},
		"the root":                    {"/", good, nil},
		"another path":                {"/metrics", good, nil},
		"a path without a Secret":     {"/webhook/shop", good, nil},
		"a path that goes on":         {"/webhook/shop/forge/", good, nil},
		"a path with two slashes":     {"/webhook//shop/forge", good, nil},
		"a path with dots":            {"/webhook/shop/../shop/forge", good, nil},
		"a ping to an unknown Secret": {"/webhook/shop/other", func(h *hook) delivery { return deliver("github", "ping", "s3cret", fixture(h.t, "github-ping")) }, nil},
		"no JSON for a wrong Secret":  {"/webhook/shop/forge", func(*hook) delivery { return deliver("github", "push", "wrong", []byte("{")) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hook) {
				if row.prepare != nil {
					row.prepare(h)
				}
				h.marked()
				if got, want := h.send(row.path, row.d(h)), (sent{http.StatusUnauthorized, "refused\n", refusedAfter}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				h.wantMarked()
			})
		})
	}
}

// Nor are they told apart by how fast a body is taken that is not in memory as a whole, which
// has to wait for the Secret.
func TestRefusalsOfLargeBodiesAreAlike(t *testing.T) {
	for name, row := range map[string]struct {
		path    string
		secret  string
		prepare func(h *hook)
	}{
		"a wrong signature":          {"/webhook/shop/forge", "wrong", nil},
		"a wrong signature, cached":  {"/webhook/shop/forge", "wrong", func(h *hook) { h.send("/webhook/shop/forge", h.push()) }},
		"an unknown Secret":          {"/webhook/shop/other", "s3cret", nil},
		"a Secret that is not read":  {"/webhook/shop/forge", "s3cret", secretsAre(apiserver.Refuse(500))},
		"a Secret that never comes":  {"/webhook/shop/forge", "s3cret", secretsAre(apiserver.Hold(nil))},
		"a Secret of a slow server":  {"/webhook/shop/forge", "wrong", secretsAre(slowly(time.Second))},
		"a Secret that is not there": {"/webhook/shop/forge", "s3cret", func(h *hook) { h.server.DeleteSecret("shop", "forge") }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hook) {
				if row.prepare != nil {
					row.prepare(h)
				}
				h.marked()
				d := deliver("github", "push", row.secret, h.largePush(bodyLimit))
				if got, want := h.send(row.path, d), (sent{http.StatusUnauthorized, "refused\n", secretWithin + refusedAfter}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				d.body = append(d.body, ' ')
				began := time.Now()
				if got := h.sendChunked(row.path, d); got.code != http.StatusRequestEntityTooLarge || got.took != secretWithin {
					t.Errorf("one that is too large is answered %+v after %v", got, time.Since(began))
				}
				h.wantMarked()
			})
		})
	}
}

// secretsAre has every read of a Secret be answered so.
func secretsAre(action apiserver.Action) func(h *hook) {
	return func(h *hook) { h.server.Inject(apiserver.Fault{Resource: "secrets", Do: action}) }
}

func slowly(by time.Duration) apiserver.Action {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		time.Sleep(by)
		next.ServeHTTP(w, r)
	}
}

// Nor are they told apart while the cluster cannot be read: all are told that.
func TestRefusalsWithoutACluster(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		heal := h.server.Inject(apiserver.Fault{Do: apiserver.Refuse(503)})
		h.server.DropWatches()
		time.Sleep(time.Minute)
		want := sent{http.StatusInternalServerError, saysUnread + "\n", refusedAfter}
		for name, got := range map[string]sent{
			"a wrong signature": h.send("/webhook/shop/forge", deliver("github", "push", "wrong", fixture(t, "github-push"))),
			"an unknown Secret": h.send("/webhook/shop/other", h.push()),
			"another path":      h.send("/", h.push()),
		} {
			if got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		heal()
	})
}

// A Secret of one namespace is nothing in another, whatever the body says.
func TestNamespacesAreApart(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		if got := h.send("/webhook/blog/forge", h.push()); got.code != http.StatusUnauthorized {
			t.Errorf("%+v", got)
		}
		h.wantMarked()
		if got := h.send("/webhook/blog/forge", deliver("github", "push", "other", fixture(t, "github-push"))); got.code != http.StatusAccepted {
			t.Errorf("%+v", got)
		}
		h.wantMarked("blog-config")
	})
}

// Only Secrets that a volume of their namespace names are read, one at a time, and as often
// as their time is over.
func TestSecretsAreReadSparingly(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second / 2)
				h.send("/webhook/shop/forge", deliver("github", "push", "wrong", nil))
				h.send("/webhook/shop/unnamed", h.push())
				h.send("/webhook/kube-system/token", h.push())
			})
		}
		all.Wait()
		for _, request := range h.server.Requests() {
			if request.Verb != "get" || request.Resource != "secrets" || request.Namespace != "shop" || request.Name != "forge" {
				t.Errorf("it asks %+v", request)
			}
		}
		if reads := h.server.Count("get", "secrets"); reads != 1 {
			t.Errorf("%d reads of one Secret within a minute", reads)
		}
	})
}

// A Secret that changed counts after a minute, and one that went is worth nothing then.
func TestASecretThatChanges(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		send := func(secret string) int {
			return h.send("/webhook/shop/forge", deliver("gitlab", "Push Hook", secret, fixture(t, "gitlab-push"))).code
		}
		if got := send("s3cret"); got != http.StatusAccepted {
			t.Errorf("%d", got)
		}
		h.server.PutSecret("shop", "forge", map[string]string{"secret": "rotated"})
		time.Sleep(kept)
		if before, after := send("s3cret"), send("rotated"); before != http.StatusUnauthorized || after != http.StatusAccepted {
			t.Errorf("the old is answered %d, the new %d", before, after)
		}
		h.server.DeleteSecret("shop", "forge")
		time.Sleep(kept)
		if got := send("rotated"); got != http.StatusUnauthorized {
			t.Errorf("one that went: %d", got)
		}
		h.server.PutSecret("shop", "forge", map[string]string{"secret": "again"})
		time.Sleep(kept)
		if got := send("again"); got != http.StatusAccepted {
			t.Errorf("one that came back: %d", got)
		}
	})
}

// A failure to read a Secret is tried again soon.
func TestASecretThatCouldNotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		heal := h.server.Inject(apiserver.Fault{Resource: "secrets", Do: apiserver.Refuse(500)})
		if got := h.send("/webhook/shop/forge", h.push()); got.code != http.StatusUnauthorized {
			t.Errorf("%+v", got)
		}
		heal()
		time.Sleep(keptFailure)
		if got := h.send("/webhook/shop/forge", h.push()); got.code != http.StatusAccepted {
			t.Errorf("%+v", got)
		}
	})
}

// Who is refused fills no log, and finds nothing of a Secret in it.
func TestRefusalsInTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		for range 20 {
			h.send("/webhook/shop/other%1b[31m", h.push())
		}
		said := h.log.String()
		if n := strings.Count(said, "is refused"); n != 1 {
			t.Errorf("20 refusals in %v have %d lines", 20*refusedAfter, n)
		}
		if !strings.Contains(said, "names the Secret in webhookSecret") || strings.Contains(said, "\x1b") || strings.Contains(said, "s3cret") {
			t.Errorf("the log has %q", said)
		}
		time.Sleep(tellEvery)
		h.send("/webhook/shop/forge", deliver("github", "push", "wrong", nil))
		if said := h.log.String(); !strings.Contains(said, "others=19") || !strings.Contains(said, "signature") {
			t.Errorf("the log has %q", said)
		}
	})
}

func TestNotAPushIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		got := h.send("/webhook/shop/forge", deliver("github", "ping", "s3cret", fixture(t, "github-ping")))
		if got.code != http.StatusBadRequest || !strings.Contains(got.body, `the event "ping"; the signature is right`) {
			t.Errorf("%+v", got)
		}
		if got := h.send("/webhook/shop/forge", deliver("github", "push", "s3cret", []byte("{"))); got.code != http.StatusBadRequest {
			t.Errorf("%+v", got)
		}
		h.wantMarked()
	})
}
