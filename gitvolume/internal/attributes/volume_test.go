package attributes

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	kubelet := map[string]string{
		"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "p", "csi.storage.k8s.io/serviceAccount.name": "-",
	}
	for _, row := range []struct {
		kind  Kind
		given map[string]string
		want  Volume
	}{
		{KindInline, map[string]string{"url": "https://h/r"}, Volume{Ref: Ref{name: "main"}, Pull: Pull{Every: 5 * time.Minute}, Offline: OfflineRefuse}},
		{KindWriteable, map[string]string{"url": "h:r", "ref": "b"}, Volume{Ref: Ref{name: "b"}, Offline: OfflineRefuse}},
		{
			KindReadOnlyClaim, map[string]string{"url": "git://h/r", "pull": "on-demand", "depth": "1", "offline": "allowStale", "webhookSecret": "hook"},
			Volume{Ref: Ref{name: "main"}, Pull: Pull{OnDemand: true}, Depth: 1, Offline: OfflineAllowStale, WebhookSecret: "hook"},
		},
		{KindInline, map[string]string{"url": "https://h/r", "pull": "never", "depth": "0"}, Volume{Ref: Ref{name: "main"}, Offline: OfflineRefuse}},
		{KindInline, map[string]string{"url": "https://h/r", "pull": "1s"}, Volume{Ref: Ref{name: "main"}, Pull: Pull{Every: time.Second}, Offline: OfflineRefuse}},
	} {
		url, err := ParseURL(row.given["url"])
		if err != nil {
			t.Fatal(err)
		}
		row.want.URL = url
		context := maps.Clone(kubelet)
		maps.Copy(context, row.given)
		if got, err := (Rules{}).Parse(row.kind, context, "pv-x"); err != nil || got != row.want {
			t.Errorf("%s %v:\n%+v, %v, want\n%+v", row.kind, row.given, got, err, row.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, row := range []struct {
		kind  Kind
		name  string
		value string
		says  string
	}{
		{KindInline, "url", "", "attribute url"},
		{KindInline, "url", "file:///etc", "--allow-local-urls"},
		{KindInline, "url", "/etc/passwd", "--allow-local-urls"},
		{KindInline, "url", "ext::sh -c id", "remote helper"},
		{KindInline, "url", "https://evil.org/r", "--allow-url"},
		{KindWriteable, "url", "git://h/r", "only be read"},
		{KindInline, "URL", "https://h/r", `"URL" is not known; there are depth, offline, pull, ref, url, webhookSecret`},
		{KindInline, "branch", "x", `"branch" is not known`},
		{KindInline, "bad\nname", "x", `"bad\nname" is not known`},
		{KindInline, "ref", "-x", "option"},
		{KindInline, "pull", "", "duration"},
		{KindInline, "pull", "5", "duration"},
		{KindInline, "pull", "999ms", "duration"},
		{KindInline, "pull", "-5m", "duration"},
		{KindInline, "pull", "1000000h1000000h1000000h", "duration"},
		{KindInline, "pull", "Never", "never"},
		{KindInline, "pull", "on-demand", "inline"},
		{KindWriteable, "pull", "5m", `"5m", is not taken by a volume of the kind "writeable volume"`},
		{KindWriteable, "depth", "0", "not taken"},
		{KindWriteable, "offline", "refuse", "not taken"},
		{KindWriteable, "webhookSecret", "s", "not taken"},
		{KindInline, "webhookSecret", "s", "not taken"},
		{KindInline, "depth", "-1", "whole number"},
		{KindInline, "depth", "+1", "whole number"},
		{KindInline, "depth", "1.5", "whole number"},
		{KindInline, "depth", "2147483647", "whole number"},
		{KindInline, "depth", "99999999999999999999", "whole number"},
		{KindInline, "offline", "allowstale", "allowStale"},
		{KindReadOnlyClaim, "webhookSecret", "", "Secret"},
		{KindReadOnlyClaim, "webhookSecret", "a/b", "Secret"},
	} {
		h, _ := ParsePattern("h")
		context := map[string]string{"url": "https://h/r"}
		context[row.name] = row.value
		v, err := (Rules{Allow: []Pattern{h}}).Parse(row.kind, context, "pv-x")
		if err == nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), row.says) || v != (Volume{}) {
			t.Errorf("%s %s=%q: the error does not say %q: %v", row.kind, row.name, row.value, row.says, err)
		}
		if err != nil && strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("the error has a line break: %v", err)
		}
	}
	if _, err := (Rules{}).Parse(KindInline, nil, ""); err == nil || !strings.Contains(err.Error(), "url is missing") {
		t.Errorf("without a URL: %v", err)
	}
	if _, err := (Rules{}).Parse(KindWriteable, map[string]string{"url": "h:r"}, "x.lock"); err == nil || !strings.Contains(err.Error(), "attribute ref") {
		t.Errorf("the default ref with a handle that makes no side branch: %v", err)
	}
	if v, err := (Rules{Local: true}).Parse(KindWriteable, map[string]string{"url": "/srv/r.git"}, "pv"); err != nil || !v.URL.IsLocal() {
		t.Errorf("an allowed local URL: %+v, %v", v, err)
	}
	for range 20 {
		_, err := (Rules{}).Parse(KindInline, map[string]string{"url": "-x", "b": "", "a": "", "pull": ""}, "")
		if !strings.Contains(err.Error(), `attribute "a"`) {
			t.Fatalf("of several mistakes another one is named: %v", err)
		}
	}
}
