package webhook

import (
	"slices"
	"testing"
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
