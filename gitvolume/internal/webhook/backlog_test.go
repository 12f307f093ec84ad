package webhook

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
)

// A volume that cannot be marked for minutes keeps no other from being made up for.
func TestAVolumeThatCannotBeMarkedHoldsNoOtherUp(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		h.server.Inject(apiserver.Fault{Verb: "patch", Name: "shop-config", Do: apiserver.Refuse(403)})
		h.send("/webhook/shop/forge", h.push())
		time.Sleep(time.Second)
		heal := h.server.Inject(apiserver.Fault{Verb: "patch", Name: "blog-config", Do: apiserver.Refuse(500)})
		h.send("/webhook/blog/forge", deliver("github", "push", "other", fixture(t, "github-push")))
		heal()
		h.marked()
		time.Sleep(2 * again)
		if !slices.Contains(h.marked(), "blog-config") {
			t.Error("a push to another volume waits")
		}
	})
}

// A restart of the controller makes up for what was pushed while it was away.
func TestTheStartMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New()
		put(server, "a", "shop", map[string]string{"url": "https://github.com/shop/config.git", "webhookSecret": "forge"})
		put(server, "b", "blog", map[string]string{"url": "https://github.com/shop/config.git", "webhookSecret": "forge"})
		put(server, "c", "blog", map[string]string{"url": "https://github.com/shop/config.git"})
		for range 2 {
			h := newHook(t, server)
			if h.Ready(t.Context()) == nil {
				t.Error("it is ready before anything was read")
			}
			heal := server.Inject(apiserver.Fault{Resource: "persistentvolumes", Do: apiserver.Refuse(503)})
			time.AfterFunc(time.Minute+time.Second, heal) // What comes earlier is forgotten.
			h.runs()
			time.Sleep(time.Minute)
			var names []string
			for volume, had := range map[string]map[string]string{"a": server.Annotations("a"), "b": server.Annotations("b"), "c": server.Annotations("c")} {
				if had[annotation] != "" {
					names = append(names, volume)
				}
			}
			if len(names) != 2 || server.Annotations("c") != nil || h.Ready(t.Context()) != nil {
				t.Errorf("marked are %v, ready is %v", names, h.Ready(t.Context()))
			}
			h.wantMarked("a", "b")
			h.stop()
		}
	})
}

// A push that is told that the cluster cannot be read is made up for.
func TestAnOutageIsMadeUpFor(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		h.send("/webhook/shop/forge", h.push())
		heal := h.server.Inject(apiserver.Fault{Do: apiserver.Refuse(503)})
		h.server.DropWatches()
		time.Sleep(30 * time.Second)
		got := h.send("/webhook/shop/forge", h.push())
		if got.code != http.StatusInternalServerError || h.Ready(t.Context()) != nil {
			t.Errorf("%+v, ready is %v", got, h.Ready(t.Context()))
		}
		h.marked()
		time.Sleep(10 * time.Minute)
		h.wantMarked()
		heal()
		time.Sleep(time.Minute)
		h.wantMarked("blog-config", "shop-config", "shop-config-2", "shop-dev", "shop-other")
		// And an outage that nobody noticed costs nothing.
		heal = h.server.Inject(apiserver.Fault{Do: apiserver.Refuse(503)})
		h.server.DropWatches()
		time.Sleep(10 * time.Minute)
		heal()
		time.Sleep(time.Minute)
		h.wantMarked()
	})
}

// One volume that cannot be marked is tried again by itself, and not for ever.
func TestAVolumeThatCannotBeMarked(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		heal := h.server.Inject(apiserver.Fault{Verb: "patch", Name: "shop-config", Do: apiserver.Refuse(403)})
		if got := h.send("/webhook/shop/forge", h.push()); got.code != http.StatusInternalServerError {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Hour)
		counts := map[string]int{}
		for _, name := range h.marked() {
			counts[name]++
		}
		if counts["shop-config"] != tries+1 || counts["shop-config-2"] != 1 || len(counts) != 2 {
			t.Errorf("marks were tried %v", counts)
		}
		h.send("/webhook/shop/forge", h.push())
		heal()
		time.Sleep(time.Minute)
		if h.server.Annotations("shop-config")[annotation] == "" {
			t.Error("it is not marked once it can be")
		}
	})
}

// A sender is answered in time however long marks take, which are made all the same.
func TestSlowMarks(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		h.server.Inject(apiserver.Fault{Verb: "patch", Do: slowly(markTimeout - time.Millisecond)})
		if got := h.send("/webhook/shop/forge", h.push()); got.code != http.StatusAccepted || got.took != patience {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		h.wantMarked("shop-config", "shop-config-2")
	})
}

// Nor are marks lost that fail after the sender was answered.
func TestMarksThatFailLate(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		h.server.Inject(apiserver.Fault{Verb: "patch", Times: 2, Do: apiserver.Hold(nil)})
		if got := h.send("/webhook/shop/forge", h.push()); got.code != http.StatusAccepted || got.took != patience {
			t.Errorf("%+v", got)
		}
		h.server.ForgetRequests()
		time.Sleep(time.Minute)
		h.wantMarked("shop-config", "shop-config-2")
	})
}

// What was asked for at the end is still marked, without the spacing of a burst.
func TestTheEndMarks(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		h.send("/webhook/shop/forge", h.push())
		var sending sync.WaitGroup
		sending.Go(func() { h.send("/webhook/shop/forge", h.push()) })
		synctest.Wait()
		began := time.Now()
		h.stop()
		sending.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("the end took %v", took)
		}
		h.wantMarked("shop-config", "shop-config", "shop-config-2", "shop-config-2")
	})
}

// Pushes that cannot be marked for a while are made up for once, not once each.
func TestABurstThatCannotBeMarked(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		heal := h.server.Inject(apiserver.Fault{Verb: "patch", Do: apiserver.Refuse(403)})
		for range 50 {
			h.send("/webhook/shop/forge", h.push())
		}
		heal()
		h.marked()
		time.Sleep(time.Hour)
		if got := h.marked(); len(got) > 4 {
			t.Errorf("%d marks make up for the pushes to 2 volumes", len(got))
		}
	})
}
