package webhook

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
)

// A push whose Secret cannot be read is answered as every refused one, and made up for when
// the Secret can be read; what is signed with something else is not.
func TestAPushWithoutItsSecret(t *testing.T) {
	other := deliver("gitlab", "Push Hook", "s3cret", []byte(`{"ref":"refs/heads/main","project":{"web_url":"https://github.com/shop/other"}}`))
	dev := func(secret string) delivery {
		return deliver("github", "push", secret, []byte(`{"ref":"refs/heads/dev","repository":{"clone_url":"https://github.com/shop/config"}}`))
	}
	for name, row := range map[string]struct {
		fault apiserver.Action
		sent  []delivery
		want  []string
	}{
		"one that is refused":        {apiserver.Refuse(500), []delivery{dev("s3cret")}, []string{"shop-dev"}},
		"one that never comes":       {apiserver.Hold(nil), []delivery{dev("s3cret")}, []string{"shop-dev"}},
		"one of half an answer":      {apiserver.Truncate(), []delivery{dev("s3cret")}, []string{"shop-dev"}},
		"a token":                    {apiserver.Refuse(503), []delivery{other}, []string{"shop-other"}},
		"several, one not signed":    {apiserver.Refuse(503), []delivery{dev("wrong"), other, other}, []string{"shop-other"}},
		"none that is signed":        {apiserver.Refuse(503), []delivery{dev("wrong"), dev("")}, nil},
		"one that may not be read":   {apiserver.Refuse(403), []delivery{dev("s3cret")}, nil},
		"one of another repository":  {apiserver.Refuse(503), []delivery{deliver("gitea", "push", "s3cret", fixture(t, "gitea-push"))}, nil},
		"what is no push":            {apiserver.Refuse(503), []delivery{deliver("github", "ping", "s3cret", fixture(t, "github-ping"))}, nil},
		"a push that nobody signed":  {apiserver.Refuse(503), []delivery{deliver("nobody", "push", "", dev("").body)}, nil},
		"another body than signed":   {apiserver.Refuse(503), []delivery{{dev("s3cret").header, append(dev("").body, ' ')}}, nil},
		"one of another's namespace": {apiserver.Refuse(503), []delivery{dev("other")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hook) {
				heal := h.server.Inject(apiserver.Fault{Resource: "secrets", Do: row.fault})
				for _, d := range row.sent {
					if got, want := h.send("/webhook/shop/forge", d), (sent{http.StatusUnauthorized, "refused\n", refusedAfter}); got != want {
						t.Errorf("%+v, want %+v", got, want)
					}
				}
				time.Sleep(time.Hour)
				if got := h.marked(); len(got) > 0 {
					t.Errorf("marked before the Secret was read: %v", got)
				}
				heal()
				time.Sleep(verifyAgain + verifyWithin + time.Second)
				h.wantMarked(row.want...)
				time.Sleep(time.Hour)
				if got := h.marked(); len(got) > 0 {
					t.Errorf("and marked again: %v", got)
				}
				if h.held.count != 0 || h.held.bytes != 0 || len(h.held.bySecret) > 0 {
					t.Errorf("still held: %d deliveries of %d bytes for %d Secrets", h.held.count, h.held.bytes, len(h.held.bySecret))
				}
			})
		})
	}
}

// An API server that takes longer than a sender waits is no reason to lose a push.
func TestASlowSecret(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		h.server.Inject(apiserver.Fault{Resource: "secrets", Do: slowly(5 * time.Second)})
		if got := h.send("/webhook/shop/forge", h.push()); got.code != http.StatusUnauthorized {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		h.wantMarked("shop-config", "shop-config-2")
	})
}

// More than can be held is made up for by all volumes of the Secret, and of no other.
func TestMoreThanIsHeld(t *testing.T) {
	large := func(h *hook) {
		h.send("/webhook/shop/forge", deliver("github", "push", "s3cret", h.largePush(startLimit+2)))
	}
	many := func(h *hook) {
		for range heldLimit + 1 {
			h.send("/webhook/shop/forge", h.push())
		}
	}
	for name, send := range map[string]func(h *hook){"one too large": large, "too many": many} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(_ *testing.T, h *hook) {
				heal := h.server.Inject(apiserver.Fault{Resource: "secrets", Do: apiserver.Refuse(503)})
				send(h)
				heal()
				time.Sleep(time.Minute)
				h.wantMarked("shop-config", "shop-config-2", "shop-dev", "shop-other")
			})
		})
	}
	// A token needs no body.
	bubble(t, func(_ *testing.T, h *hook) {
		heal := h.server.Inject(apiserver.Fault{Resource: "secrets", Do: apiserver.Refuse(503)})
		d := deliver("gitlab", "Push Hook", "s3cret", h.largePush(bodyLimit))
		h.send("/webhook/shop/forge", d)
		heal()
		time.Sleep(time.Minute)
		h.wantMarked("shop-config", "shop-config-2")
	})
}

// What is held has a bound, also of many Secrets and of bodies as large as may be held.
func TestTheBoundsOfWhatIsHeld(t *testing.T) {
	var h held
	body := make([]byte, startLimit)
	for i := range 10 * heldLimit {
		h.add(secretName{"shop", strings.Repeat("x", i%10)}, unverified{body: body}, true)
		if h.bytes > heldBytes || h.count > heldLimit {
			t.Fatalf("%d deliveries of %d bytes are held", h.count, h.bytes)
		}
	}
	over := 0
	for _, name := range h.names() {
		if h.take(name).isOver {
			over++
		}
	}
	if over == 0 || h.bytes != 0 || h.count != 0 {
		t.Errorf("%d Secrets had too many, and still held are %d deliveries of %d bytes", over, h.count, h.bytes)
	}
}

// What was held for a Secret that went, or that no volume names any more, marks nothing, and
// ends the reading.
func TestHeldForNobody(t *testing.T) {
	for name, change := range map[string]func(h *hook){
		"no Secret": func(h *hook) { h.server.DeleteSecret("shop", "forge") },
		"no volume": func(h *hook) {
			for _, volume := range []string{"shop-config", "shop-config-2", "shop-dev", "shop-other"} {
				h.server.DeleteVolume(volume)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hook) {
				heal := h.server.Inject(apiserver.Fault{Resource: "secrets", Do: apiserver.Refuse(503)})
				h.send("/webhook/shop/forge", h.push())
				change(h)
				heal()
				time.Sleep(time.Minute)
				h.wantMarked()
				time.Sleep(time.Hour)
				for _, request := range h.server.Requests() {
					if request.Resource == "secrets" {
						t.Errorf("it still asks: %+v", request)
					}
				}
			})
		})
	}
}

// While both fail, the volumes are read anew before any is marked.
func TestHeldWhileTheClusterIsNotRead(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		secrets := h.server.Inject(apiserver.Fault{Resource: "secrets", Do: apiserver.Refuse(503)})
		h.send("/webhook/shop/forge", h.push())
		volumes := h.server.Inject(apiserver.Fault{Resource: "persistentvolumes", Do: apiserver.Refuse(503)})
		h.server.DropWatches()
		time.Sleep(time.Minute)
		secrets()
		h.marked()
		time.Sleep(10 * time.Minute)
		h.wantMarked()
		volumes()
		time.Sleep(time.Minute)
		if got := h.marked(); !slices.Contains(got, "shop-config") || !slices.Contains(got, "shop-config-2") {
			t.Errorf("marked are %v", got)
		}
	})
}
